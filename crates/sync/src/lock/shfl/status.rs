//! The state of a waiter in a ShflLock queue, as one word of its node.
//!
//! ```text
//!                 grant                      (takes the lock, leaves)
//!   WAITING ─────────────────────►  HEAD ────────────────────────────►
//!    │   ▲                           ▲
//!    │   │ wakes                     │ grant
//!    ▼   │                           │
//!   PARKED ──────────────────────────┘
//!    │
//!    │ deadline (also from WAITING)
//!    ▼
//!   ABANDONED ── grant finds it so, and reclaims the node
//! ```
//!
//! An owner that hands the lock over (`handover.rs`) makes the next waiter the owner by one
//! exchange: `WAITING` ──► `HEAD+OWNER`, and the waiter has the lock. The head of a spinlock makes
//! the next waiter of its cohort the head by a store. `QUEUED` and `CLOSED` are bits beside these
//! states, of nodes in cohorts (`cohort.rs`). `QUEUED`: the first of the cohort has put the node
//! into the queue. `CLOSED`: the waiter has left ahead of an arriving waiter that has not linked
//! itself. `OUT` is a bit beside `WAITING` or `PARKED`, of a waiter that slept when its turn came
//! (`aside.rs`): the waiter stands in no queue, and begins anew.
//!
//! `SHUFFLER` is a bit beside these states: the waiter holds the shuffling role. The role is given
//! by the status word, so that a spinning waiter sees both by loading one word. The bit is also
//! there while the waiter sleeps, so that the head can take the role back (URGENT-3). `WAITING`
//! stays set beside the other states: a word of 0 is that of a node which was wiped, in the child
//! of a fork.
//!
//! Another thread may move a waiter of a condition variable from its list (`moved.rs`):
//!
//! ```text
//!   LISTED ────────► NOTIFIED      (wakes, and goes to the mutex by itself)
//!     │  └─────────► HEAD          (is woken)
//!     └────────────► PARKED+MOVED  (is woken, or sleeps on: no timer of its own wakes it)
//! ```
//!
//! `LOOKING` is a bit beside `LISTED`: the waiter is awake, and is about to look at the list
//! itself.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform, Waiter};

/// The status word, unpacked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Status(u32);

const WAITING: u32 = 16;
const PARKED: u32 = 1;
const HEAD: u32 = 2;
const ABANDONED: u32 = 4;
const SHUFFLER: u32 = 8;
/// The waiter was asleep when a broadcast moved it, and sleeps on without the backstop.
const MOVED: u32 = 32;

/// The flags, which are the low eight bits.
const FLAGS: u32 = 0xFF;
/// The waiter's urgency, eight bits ([`Urgency::urgency`](antiphon_platform::Urgency::urgency)); 0
/// if it has none, or has not asked. Only the waiter writes it.
const URGENCY_SHIFT: u32 = 8;

/// The waiter has the lock: its last owner has handed it over (`handover.rs`). Set with `HEAD`.
const OWNER: u32 = 1 << 16;
/// The waiter has left its cohort ahead of an arriving waiter (`cohort.rs`).
const CLOSED: u32 = 1 << 17;
/// The waiter stood in a cohort, and stands in the queue now.
const QUEUED: u32 = 1 << 18;
/// The waiter was set aside, and is in no queue (`aside.rs`).
const OUT: u32 = 1 << 19;

/// On the list of a condition variable. No bit of a queue is set, except perhaps headship and the
/// role: these may come before the waiter is told that it was moved.
pub(crate) const LISTED: u32 = 0;
/// Off the list, notified, and in no queue.
pub(crate) const NOTIFIED: u32 = 64;
/// On the list, and about to look at the list.
const LOOKING: u32 = 128;

impl Status {
    pub(super) fn head(self) -> bool {
        self.0 & HEAD != 0
    }

    pub(super) fn owner(self) -> bool {
        self.0 & OWNER != 0
    }

    pub(super) fn queued(self) -> bool {
        self.0 & QUEUED != 0
    }

    pub(super) fn out(self) -> bool {
        self.0 & OUT != 0
    }

    pub(super) fn closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    pub(super) fn parked(self) -> bool {
        self.0 & PARKED != 0
    }

    pub(super) fn abandoned(self) -> bool {
        self.0 & ABANDONED != 0
    }

    pub(super) fn shuffler(self) -> bool {
        self.0 & SHUFFLER != 0
    }

    /// Returns whether the node is in a queue, and its waiter may know it.
    pub(super) fn waiting(self) -> bool {
        self.0 & WAITING != 0
    }

    pub(super) fn notified(self) -> bool {
        self.0 & NOTIFIED != 0
    }

    pub(super) fn moved(self) -> bool {
        self.0 & MOVED != 0
    }

    pub(super) fn looking(self) -> bool {
        self.0 & LOOKING != 0
    }

    /// Returns the waiter's urgency as far as the waiter has set it; 0 for a waiter that has left.
    pub(super) fn urgency(self) -> u8 {
        if self.abandoned() { 0 } else { (self.0 >> URGENCY_SHIFT) as u8 }
    }

    /// Returns whether the waiter has nothing to do but wait.
    pub(super) fn idle(bits: u32) -> bool {
        bits & (WAITING | HEAD | SHUFFLER | OUT) == WAITING
    }

    pub(super) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// The result of a waiter's attempt to leave before its turn.
#[must_use]
pub(super) enum Leave {
    /// The waiter has left; its node stays until the head passes it.
    Abandoned,
    /// The waiter was turned out before this: its node is its own.
    Out,
    /// Too late: the waiter is the head.
    IsHead,
}

/// Returns the status of `node`. Acquire: pairs with the release in [`grant`], so that a new head
/// sees what the last one did, and in [`give_role`], so that it sees the queue as that shuffler
/// left it.
pub(super) fn load<P: Platform>(node: &Waiter<P>) -> Status {
    Status(node.status.load(Acquire))
}

/// Sets the status of a new waiter, before it joins the queue.
pub(super) fn begin<P: Platform>(node: &Waiter<P>) {
    // Relaxed: published with the node, by the exchange of the tail.
    node.status.store(WAITING, Relaxed);
}

/// Makes the waiter the head at once: it found no queue before it.
pub(super) fn begin_as_head<P: Platform>(node: &Waiter<P>) {
    // Relaxed: no other thread writes to it now.
    node.status.fetch_or(HEAD, Relaxed);
}

/// HEAD → WAITING, by the head itself, which is about to make another waiter the head.
pub(super) fn step_down<P: Platform>(node: &Waiter<P>) {
    // Relaxed: the thread that makes it the head again got the headship from the waiter to which
    // this one grants it next.
    node.status.fetch_and(!HEAD, Relaxed);
}

/// Notes how urgent the waiter is; called by the waiter.
pub(super) fn set_urgency<P: Platform>(node: &Waiter<P>, urgency: u8) {
    // Relaxed: the urgency decides about order only. In a node that is in no queue yet it is
    // published with the node.
    node.status.fetch_or(u32::from(urgency) << URGENCY_SHIFT, Relaxed);
}

/// Makes `node` the head; returns what it was before. Release: pairs with [`load`] and the spin on
/// the status. Acquire: of an abandoned node, pairs with [`leave`].
pub(super) fn grant<P: Platform>(node: &Waiter<P>) -> Status {
    Status(node.status.fetch_or(HEAD, AcqRel))
}

/// The result of offering the lock to a waiter.
#[must_use]
pub(super) enum Offer {
    /// The waiter has the lock.
    Taken,
    /// The waiter sleeps, and no longer has the shuffling role.
    Asleep,
    /// The waiter has left.
    Left,
    /// The waiter was moved here, and sleeps; or it is the head of another queue.
    Stays,
}

/// WAITING → HEAD+OWNER, by the owner. If the waiter is not awake, the result says what was done
/// instead. Release: pairs with [`load`] and the spin on the status: the lock is the waiter's.
pub(super) fn hand_over<P: Platform>(node: &Waiter<P>) -> Offer {
    // No load comes first: the exchange fetches the cache line, once.
    let mut seen = WAITING;
    loop {
        let (then, offer) = if seen & ABANDONED != 0 {
            return Offer::Left;
        } else if seen & (MOVED | HEAD) != 0 {
            return Offer::Stays;
        } else if seen & PARKED == 0 {
            (seen | HEAD | OWNER, Offer::Taken)
        } else if seen & SHUFFLER == 0 {
            return Offer::Asleep;
        } else {
            // ASIDE-4. The waiter has not taken the role, or left it here when it went to sleep.
            (seen & !SHUFFLER, Offer::Asleep)
        };
        // Acquire where the waiter sleeps or has left: we see the queue as it left it when it
        // shuffled, and its node as well; pairs with `park` and `leave`.
        // mutant: no drawn execution hands over to a waiter that has shuffled and sleeps, and reads
        // a link from before.
        match node.status.compare_exchange(seen, then, Release, Acquire) {
            Ok(_) => return offer,
            Err(now) => seen = now,
        }
    }
}

/// WAITING → HEAD, of a waiter in a cohort that neither sleeps nor leaves. Called by the head
/// before it, the only thread that writes to its status then: so a store is enough, and the caller
/// does not wait for it.
pub(super) fn appoint<P: Platform>(node: &Waiter<P>) {
    // Relaxed: the caller has the spinlock, and the new head uses what it inherits when it has
    // acquired that. If the head looks earlier whether it is an heir, and does not see it, it has
    // no waiter behind its own node to sort.
    node.status.store(WAITING | HEAD, Relaxed);
}

/// Notes that the node's waiter has left its cohort; called by the thread that ends the node's part
/// in the cohort.
pub(super) fn close<P: Platform>(node: &Waiter<P>) {
    // Relaxed: for the same thread, which gives the node back, and for an arriving waiter, which
    // acquires it by `wants`.
    node.status.fetch_or(CLOSED, Relaxed);
}

/// Notes that the node is about to be put from its cohort into the queue; called by the cohort's
/// first.
pub(super) fn queue<P: Platform>(node: &Waiter<P>) {
    // Relaxed: the bit decides how long the waiter may sleep, and that the waiter need not leave.
    node.status.fetch_or(QUEUED, Relaxed);
}

/// WAITING → PARKED; returns `false` if the waiter has something else to do, or was put into the
/// queue without knowing it: `queued` is whether it is [`queued`](Status::queued) as far as it
/// knows. A waiter that has the shuffling `role` leaves it in the word while it sleeps: the head
/// may [take it back](recall_role).
pub(super) fn park<P: Platform>(node: &Waiter<P>, urgency: u8, role: bool, queued: bool) -> bool {
    let waiting = WAITING | u32::from(urgency) << URGENCY_SHIFT | if queued { QUEUED } else { 0 };
    let parked = waiting | if role { PARKED | SHUFFLER } else { PARKED };
    // Release: the queue as a shuffler has left it; pairs with the acquire in `recall_role`. Also
    // the link by which the waiter has joined: if an owner has seen the waiter asleep, by an
    // acquire, and then releases, the head sees it in the queue.
    node.status.compare_exchange(waiting, parked, Release, Relaxed).is_ok()
}

/// PARKED → WAITING, by the waiter itself.
pub(super) fn unpark<P: Platform>(node: &Waiter<P>) -> Status {
    // Acquire: as `load`.
    Status(node.status.fetch_and(!PARKED, Acquire) & !PARKED)
}

/// WAITING or PARKED → OUT, of a waiter that was set aside; returns what it was before. Release:
/// what we did to the node; pairs with [`load`], [`leave`] and the spin on the status: the node is
/// its waiter's from then on. Acquire: of an abandoned node, pairs with [`leave`].
pub(super) fn turn_out<P: Platform>(node: &Waiter<P>) -> Status {
    // mutant: in the models a waiter that was set aside writes no more to its node before it
    // leaves.
    Status(node.status.fetch_or(OUT, AcqRel))
}

/// WAITING → ABANDONED, unless the waiter is the head by now, or was turned out.
pub(super) fn leave<P: Platform>(node: &Waiter<P>) -> Leave {
    loop {
        let Status(seen) = load(node);
        if seen & HEAD != 0 {
            return Leave::IsHead;
        }
        if seen & OUT != 0 {
            return Leave::Out;
        }
        // Release: our last look at the node happens before the head reclaims it; pairs with
        // `grant`. Relaxed where it fails: the loop loads it again.
        // mutant: a waiter that leaves has slept, and `park` has released what it did before.
        let left = node.status.compare_exchange(seen, seen | ABANDONED, Release, Relaxed);
        if left.is_ok() {
            return Leave::Abandoned;
        }
    }
}

/// Gives the shuffling role to `node` (INV-1, INV-3). Release: pairs with [`load`].
pub(super) fn give_role<P: Platform>(node: &Waiter<P>) {
    node.status.fetch_or(SHUFFLER, Release);
}

/// Takes the role that [`give_role`] gave, or that the waiter left in its word when it went to
/// sleep; `false` if the head has taken it back.
pub(super) fn take_role<P: Platform>(node: &Waiter<P>) -> bool {
    // Relaxed: the caller has seen the bit by an acquire.
    Status(node.status.fetch_and(!SHUFFLER, Relaxed)).shuffler()
}

/// Takes the role back from a waiter that has not taken it; `false` if the waiter has taken it, or
/// never had it. Acquire: pairs with the releases in [`give_role`] and [`park`]: the queue is as
/// that shuffler has left it.
pub(super) fn recall_role<P: Platform>(node: &Waiter<P>) -> bool {
    // mutant: no drawn execution of the model that recalls a role reads a link from before.
    Status(node.status.fetch_and(!SHUFFLER, Acquire)).shuffler()
}

/// LISTED → HEAD, or PARKED+MOVED, of a waiter that will be woken: until it has [arrived](arrive),
/// no thread can know that it runs. Returns what it was before. Release: pairs with [`load`] and
/// with [`look`]; the waiter sees its node as the mover left it.
pub(super) fn admit<P: Platform>(node: &Waiter<P>, head: bool) -> Status {
    let bits = if head { WAITING | HEAD } else { WAITING | PARKED | MOVED };
    Status(node.status.fetch_or(bits, Release))
}

/// LISTED → PARKED+MOVED, of a waiter that sleeps on; returns what it was before.
pub(super) fn admit_asleep<P: Platform>(node: &Waiter<P>) -> Status {
    // Release: what we know of the lock, and that the waiter stands in the queue: a waiter that
    // wakes by itself judges by it whether it may sleep (WATCH-2). Pairs with the acquire by which
    // the waiter sees that it was moved.
    Status(node.status.fetch_or(WAITING | PARKED | MOVED, Release))
}

/// LISTED → LOOKING, by the waiter itself; returns what it was before. Acquire: pairs with
/// [`admit`].
pub(super) fn look<P: Platform>(node: &Waiter<P>) -> Status {
    Status(node.status.fetch_or(LOOKING, Acquire))
}

/// Notes that the waiter that was moved is awake, and waits in the queue like any other.
pub(super) fn arrive<P: Platform>(node: &Waiter<P>) {
    // Relaxed: the waiter has seen by an acquire that it was moved.
    node.status.fetch_and(WAITING | HEAD | SHUFFLER | !FLAGS, Relaxed);
}

/// Returns the waiter's urgency as far as the waiter has set it.
pub(crate) fn urgency<P: Platform>(node: &Waiter<P>) -> u8 {
    // Relaxed: decides about order only.
    Status(node.status.load(Relaxed)).urgency()
}

/// Returns the status of a waiter that begins to wait on the list of a condition variable.
pub(crate) fn listed(urgency: u8) -> u32 {
    LISTED | u32::from(urgency) << URGENCY_SHIFT
}
