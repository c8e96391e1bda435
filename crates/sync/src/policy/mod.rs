//! Policies: which waiters may stand before which in a lock's queue.
//!
//! ShflLock separates a lock's mechanism (a queue that a waiter may reorder) from its policy (the
//! order that is wanted): `000_…`, "Decouple lock design from lock policy via shuffling mechanism".
//! A policy is a value: one without a size costs nothing where it decides nothing, and a byte in
//! the lock ([`Chosen`]) can be changed while the lock is in use.
//!
//! | policy | its waiters stand | name |
//! |---|---|---|
//! | [`Numa`] | beside those of their socket | `numa` |
//! | [`Distance`] | nearest first, by caches, sockets and hops | `distance` |
//! | [`Priority`] | the most urgent first | `priority` |
//! | [`Scl`] | first the one that has held locks least | `scl` |
//! | [`Boost`] | as they came, and lend the owner their urgency | `boost` |
//! | [`WakeUp`] | as they came, and the next is awake in time | `wake-up` |
//! | [`None`] | as they came | `none` |
//! | [`Then`] | as the first says, and where that is silent as the second | `priority+distance` |
//!
//! There are two kinds. A policy that **groups** says of a waiter whether it belongs beside the one
//! that shuffles; the queue is then served group by group, and waiters do the shuffling. A policy
//! that **sorts** puts any two waiters in order; the head keeps the queue sorted.
//!
//! ```
//! use antiphon_platform::Platform;
//! use antiphon_sync::policy::{Policy, Waiting};
//!
//! /// Waiters of the same parity of socket stand together.
//! #[derive(Clone, Copy, Default, PartialEq)]
//! struct Parity;
//!
//! impl Policy for Parity {
//!     fn shuffles<P: Platform>(self) -> bool {
//!         P::numa()
//!     }
//!     fn on_wait<P: Platform>(self, me: &Waiting<P>) {
//!         me.set_rank(P::socket().0 as u16 % 2);
//!     }
//!     fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
//!         shuffler.rank() == candidate.rank()
//!     }
//! }
//! ```

mod chosen;
mod near;
mod owner;
mod priority;
mod then;
mod waiting;
mod wake_up;

use core::cmp::Ordering;

use antiphon_platform::Platform;

pub use chosen::{Chosen, Unknown};
pub use near::{Distance, Numa};
pub use owner::{Boost, Scl};
pub use priority::{Priority, set_priority};
pub use then::Then;
pub use waiting::Waiting;
pub use wake_up::WakeUp;

/// The order that a shuffler wants in the queue.
///
/// All answers are about order and none about exclusion, so guesses are good enough; of a waiter, a
/// policy sees only the words to sort by ([`Waiting`]). Policies are asked in the middle of a lock:
/// no function may wait, lock or panic.
pub trait Policy: Copy + Default + PartialEq + Send + Sync + 'static {
    /// The policy of a lock in which `byte` is stored; the inverse of [`byte`](Self::byte). For
    /// policies that are chosen at run time; the type says all others. A new lock's byte is 0,
    /// which must be the default.
    fn of(_byte: impl FnOnce() -> u8) -> Self {
        Self::default()
    }

    /// The byte for this policy in a lock whose policy [was
    /// set](crate::lock::ShflMutex::set_policy).
    fn byte(self) -> u8 {
        0
    }

    /// Whether there is anything to sort by on this machine. Asked at most twice per wait.
    fn shuffles<P: Platform>(self) -> bool {
        true
    }

    /// Whether waiters have to note what they are sorted by. Asked once, when a wait begins.
    fn notes<P: Platform>(self) -> bool {
        self.shuffles::<P>()
    }

    /// Notes in the caller's own node, which is in no queue yet, what the caller will be sorted by:
    /// [`rank`](Waiting::rank) is the policy's; [`socket`](Waiting::socket) and
    /// [`cpu`](Waiting::cpu) are for the place where the caller runs. Called once per wait, if the
    /// policy [`notes`](Self::notes).
    fn on_wait<P: Platform>(self, _me: &Waiting<P>) {}

    /// Whether `candidate` should be moved up behind the group that `shuffler` gathers. For a
    /// policy that sorts: whether the two would put all others into the same order.
    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool;

    /// Whether the policy only gathers waiters by their sockets.
    fn by_socket<P: Platform>(self) -> bool {
        false
    }

    /// Whether the policy sorts: then [`compare`](Self::compare) decides, and no groups are
    /// gathered.
    fn sorts(self) -> bool {
        false
    }

    /// The order of two waiters as `shuffler` sees it: `Less` if `one` should stand before `other`,
    /// `Equal` if they should stand as they came. The default: a waiter that belongs to the
    /// shuffler's group stands first.
    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        self.groups(shuffler, other).cmp(&self.groups(shuffler, one))
    }

    /// Whether the order is worth an owner's time. If so, the owner sorts, before its critical
    /// section begins, what its wait as the head was too short for. If the next waiter sleeps the
    /// owner does so anyhow: a look at each newcomer is little beside a wake.
    fn strict(self) -> bool {
        false
    }

    /// How large a group may grow, and how often a waiter may be overtaken by sorting: the bound
    /// beyond which no waiter is passed over again. [`Form::GROUP`](crate::lock::Form::GROUP) is
    /// another bound; the smaller holds.
    fn bypass(self) -> u16 {
        u16::MAX
    }

    /// Whether a waiter that sleeps right behind the head is to be woken ahead of its turn. If not,
    /// it sleeps until the lock is free.
    fn wakes(self) -> bool {
        false
    }

    /// Whether waiters lend the owner their [`rank`](Waiting::rank), in a lock that
    /// [knows it](crate::lock::ShflOwned).
    fn lends(self) -> bool {
        false
    }

    /// Whether such a lock measures for how long it is held.
    fn measures(self) -> bool {
        false
    }
}

/// First come, first served: no waiter is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct None;

impl Policy for None {
    fn shuffles<P: Platform>(self) -> bool {
        false
    }

    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        false
    }
}
