//! Policies: the order of waiters in a lock's queue.
//!
//! ShflLock separates a lock's mechanism (a queue that a waiter may reorder) from its policy (the
//! order that is wanted): `000_…`, "Decouple lock design from lock policy via shuffling mechanism".
//! A policy is a value: a type without a size costs nothing where it decides nothing, and a byte in
//! the lock ([`Chosen`]) can be changed while the lock is in use.
//!
//! | policy | order of waiters | name |
//! |---|---|---|
//! | [`Numa`] | together with those of their socket | `numa` |
//! | [`Distance`] | nearest first, by caches, sockets and hops | `distance` |
//! | [`Priority`] | the most urgent first | `priority` |
//! | [`Scl`] | the thread that has held locks least first | `scl` |
//! | [`Boost`] | as they came, and lend the owner their urgency | `boost` |
//! | [`WakeUp`] | as they came, and the next is awake in time | `wake-up` |
//! | [`None`] | as they came | `none` |
//! | [`Then`] | by the first policy, and among equals by the second | `priority+distance` |
//!
//! There are two kinds. A policy that **groups** decides whether a waiter belongs beside the waiter
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
/// The answers affect order and never exclusion, so guesses are good enough; of a waiter, a policy
/// sees only the words to sort by ([`Waiting`]). Policies are called inside a lock's slow path: no
/// function may wait, lock or panic.
pub trait Policy: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Returns the policy of a lock in which `byte` is stored; the inverse of [`byte`](Self::byte).
    /// For policies that are chosen at run time; all others are determined by the type. A new
    /// lock's byte is 0, which must stand for the default.
    fn of(_byte: impl FnOnce() -> u8) -> Self {
        Self::default()
    }

    /// Returns the byte for this policy in a lock whose policy [was
    /// set](crate::lock::ShflMutex::set_policy).
    fn byte(self) -> u8 {
        0
    }

    /// Returns whether there is anything to sort by on this machine. Asked at most twice per wait.
    fn shuffles<P: Platform>(self) -> bool {
        true
    }

    /// Returns whether waiters must note what they are sorted by. Asked once, when a wait begins.
    fn notes<P: Platform>(self) -> bool {
        self.shuffles::<P>()
    }

    /// Notes in the caller's own node, which is in no queue yet, what the caller will be sorted by:
    /// [`rank`](Waiting::rank) is free for the policy; [`socket`](Waiting::socket) and
    /// [`cpu`](Waiting::cpu) are for the place where the caller runs. Called once per wait, if the
    /// policy [`notes`](Self::notes).
    fn on_wait<P: Platform>(self, _me: &Waiting<P>) {}

    /// Returns whether `candidate` should be moved up behind the group that `shuffler` gathers. For
    /// a policy that sorts: returns whether the two would put all others into the same order.
    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool;

    /// Returns whether the policy only gathers waiters by their sockets.
    fn by_socket<P: Platform>(self) -> bool {
        false
    }

    /// Returns whether the policy sorts: then [`compare`](Self::compare) decides, and no groups are
    /// gathered.
    fn sorts(self) -> bool {
        false
    }

    /// Returns the order of two waiters as `shuffler` sees it: `Less` if `one` should stand before
    /// `other`, `Equal` if they should stand as they came. By default, a waiter that belongs to the
    /// shuffler's group stands first.
    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        self.groups(shuffler, other).cmp(&self.groups(shuffler, one))
    }

    /// Returns whether the order is worth an owner's time. If so, the owner sorts, before its
    /// critical section begins, the waiters for which its wait as the head was too short. If the
    /// next waiter sleeps the owner always does so: a look at each new waiter is cheap compared
    /// with a wake.
    fn strict(self) -> bool {
        false
    }

    /// Returns the largest size of a group, and how many times a waiter may be overtaken by
    /// sorting. [`Form::GROUP`](crate::lock::Form::GROUP) also bounds groups; the smaller bound
    /// holds.
    fn bypass(self) -> u16 {
        u16::MAX
    }

    /// Returns whether a waiter that sleeps right behind the head must be woken ahead of its turn.
    /// If not, it sleeps until the lock is free.
    fn wakes(self) -> bool {
        false
    }

    /// Returns whether waiters lend the owner their [`rank`](Waiting::rank), in a lock that [knows
    /// it](crate::lock::ShflOwned).
    fn lends(self) -> bool {
        false
    }

    /// Returns whether a lock that [knows its owner](crate::lock::ShflOwned) measures how long it
    /// is held.
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
