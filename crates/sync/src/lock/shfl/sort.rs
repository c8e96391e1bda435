//! Sorting: the head, while it waits, keeps the queue behind it in the order of a policy that
//! sorts.
//!
//! In shuffling (`shuffle.rs`) the shuffler gathers a group, and passes the role on to the last of
//! the group. A sorted queue has no such place to continue from: an arriving waiter may belong
//! anywhere. So the role stays where it is, as a rule at the head, and ends with that headship. The
//! next head has a new role, because its `batch` is 0, and is told how far the queue was sorted
//! (`resume`): each waiter is looked at once, and no head starts from the beginning.
//!
//! ```text
//!   HEAD ──► sorted ──► … ──► sorted ──► candidate ──► … ──► last
//!    role       ▲                │seen       │
//!               └──── inserted ──────────────┘
//! ```
//!
//! INV-1 to INV-4 hold unchanged. If the policy changes while a waiter further back has the role,
//! that waiter keeps it until it is the head; all waiters before it are of a group, so none of them
//! creates another role. INV-6 holds too. In place of INV-5:
//!
//! - INV-7: no waiter is overtaken by sorting more than `bypass` times in a wait. Each waiter's
//!   node counts this in `passed`, which only the waiter that has the role writes.

use core::cmp::Ordering;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter};

use super::moved;
use super::queue::{Place, Tail};
use crate::policy::{Policy, Waiting};

/// Puts waiters behind `me`, which has the role, in order while `stop` is false; looks at no more
/// than `most` waiters.
pub(super) fn sort<P: Platform, Q: Policy>(
    policy: Q,
    me: Place<P>,
    tail: &impl Tail<P>,
    (most, bypass): (u32, u32),
    stop: impl Fn() -> bool,
) {
    // Relaxed throughout, as in `shuffle`: only the waiter with the role or the headship uses these
    // words.
    me.node.batch.store(me.node.batch.load(Relaxed).max(1), Relaxed);
    let mut seen = Place::at(me.node.resume.load(Relaxed)).unwrap_or(me);
    for _ in 0..most {
        // QUEUE-2, as in `shuffle`.
        let Some(candidate) = seen.next().filter(|place| !tail.is(place.id)) else { break };
        // Acquire: the node that we link to `seen` must be whole for every thread that follows the
        // link.
        let behind = candidate.node.next.load(Acquire);
        if behind == 0 {
            break;
        }
        let passes = |other: Place<P>| {
            let [me, candidate] = [me, candidate].map(|place| Waiting::of(place.node));
            let order = policy.compare(me, candidate, Waiting::of(other.node));
            order == Ordering::Less && u32::from(other.node.passed.load(Relaxed)) < bypass
        };
        // A rearguard stays behind the waiters that it guards (MOVE-2). A candidate that can't pass
        // the last waiter can't pass any.
        if seen == me || moved::is_rearguard(candidate.node) || !passes(seen) {
            seen = candidate;
        } else {
            insert(me, seen, candidate, behind, passes);
        }
        if stop() {
            break;
        }
    }
    me.node.resume.store(if seen == me { 0 } else { seen.id.bits() }, Relaxed);
}

/// Moves `candidate`, which is right behind `seen`, as far to the front as it passes all waiters in
/// between. `behind` is the name of the waiter that comes after it.
fn insert<P: Platform>(
    me: Place<P>,
    seen: Place<P>,
    candidate: Place<P>,
    behind: u32,
    passes: impl Fn(Place<P>) -> bool,
) {
    let mut last = me;
    let mut at = me;
    while at != seen {
        let Some(next) = at.next() else { return };
        at = next;
        if !passes(at) {
            last = at;
        }
    }
    let mut at = last;
    while at != seen {
        let Some(next) = at.next() else { return };
        at = next;
        // INV-7.
        at.node.passed.store(at.node.passed.load(Relaxed).saturating_add(1), Relaxed);
    }
    // Relaxed: a thread that follows these links has the role or is the head. It has that from us,
    // directly or by others, with all that we have seen and done.
    seen.node.next.store(behind, Relaxed);
    candidate.node.next.store(last.node.next.load(Relaxed), Relaxed);
    last.node.next.store(candidate.id.bits(), Relaxed);
}

/// How far the queue is sorted: a head that has the role passes this to the next head.
pub(super) struct Sorted(u32);

impl Sorted {
    /// Nothing is sorted: the next head starts from the beginning.
    pub(super) const NO: Self = Self(0);

    /// Returns how far `me`, which has the role, has sorted.
    pub(super) fn by<P: Platform>(me: Place<P>) -> Self {
        Self(me.node.resume.load(Relaxed))
    }

    /// Tells `next`, which is about to be the head in place of `from`, how far the queue is sorted.
    /// Must be called before the headship is granted.
    pub(super) fn tell<Q: Policy, P: Platform>(
        &mut self,
        policy: Q,
        from: &Waiter<P>,
        next: Place<P>,
    ) {
        if self.0 == 0 {
            return;
        }
        // A head that sees the queue differently sorts it anew; if `next` is itself the last that
        // was sorted, there is nothing to tell. `from` may have a new user by now: then this is
        // only a bad guess.
        if self.0 == next.id.bits() || !policy.groups(Waiting::of(from), Waiting::of(next.node)) {
            *self = Self::NO;
            return;
        }
        // Relaxed: `next` reads it as the head, and learns that it is the head afterwards.
        next.node.resume.store(self.0, Relaxed);
    }
}
