//! Sorting: the head, while it waits, keeps the queue behind it in the order of a policy that
//! sorts.
//!
//! Shuffling (`shuffle.rs`) gathers a group, and who has the role passes it on to the last of the
//! group. A sorted queue has no such place to go on from: whoever comes may belong anywhere. So the
//! role stays where it is, as a rule at the head, and vanishes with it. The next head has it anew,
//! since its `batch` is 0, and is told how far the queue was sorted (`resume`): each waiter is
//! looked at once, and no head begins at the beginning.
//!
//! ```text
//!   HEAD ──► sorted ──► … ──► sorted ──► candidate ──► … ──► last
//!    role       ▲                │seen       │
//!               └──── inserted ──────────────┘
//! ```
//!
//! INV-1 to INV-4 hold as they are: where the policy changes while a waiter further back has the
//! role, that one has it until it is the head, and all before it are of a group, so that none of
//! them makes another. INV-6 holds too. In place of INV-5:
//!
//! - INV-7: nobody is overtaken by sorting more than `bypass` times in a wait. Each waiter counts
//!   how often (`passed`); only who has the role writes that.

use core::cmp::Ordering;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter};

use super::moved;
use super::queue::{Place, Tail};
use crate::policy::{Policy, Waiting};

/// Puts waiters behind `me`, who has the role, in order while `stop` is false; looks at `most` of
/// them at most.
pub(super) fn sort<P: Platform, Q: Policy>(
    policy: Q,
    me: Place<P>,
    tail: &impl Tail<P>,
    (most, bypass): (u32, u32),
    stop: impl Fn() -> bool,
) {
    // Relaxed throughout, as in `shuffle`: these words are the role's, or the headship's.
    me.node.batch.store(me.node.batch.load(Relaxed).max(1), Relaxed);
    let mut seen = Place::at(me.node.resume.load(Relaxed)).unwrap_or(me);
    for _ in 0..most {
        // QUEUE-2, as in `shuffle`.
        let Some(candidate) = seen.next().filter(|place| !tail.is(place.id)) else { break };
        // Acquire: what we link to `seen` must be whole for whoever follows the link.
        let behind = candidate.node.next.load(Acquire);
        if behind == 0 {
            break;
        }
        let passes = |other: Place<P>| {
            let [me, candidate] = [me, candidate].map(|place| Waiting::of(place.node));
            let order = policy.compare(me, candidate, Waiting::of(other.node));
            order == Ordering::Less && u32::from(other.node.passed.load(Relaxed)) < bypass
        };
        // A rearguard stays behind its own (MOVE-2). Who can't pass the last can't pass anybody.
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

/// Moves `candidate`, right behind `seen`, to before the first behind which there is nobody that it
/// does not pass. `behind` is the name of who comes after it.
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
    // Relaxed: who follows these links has the role or is the head, and has that from us, directly
    // or by others, with all that we have seen and done.
    seen.node.next.store(behind, Relaxed);
    candidate.node.next.store(last.node.next.load(Relaxed), Relaxed);
    last.node.next.store(candidate.id.bits(), Relaxed);
}

/// What a head that has the role leaves to the next one: how far the queue is sorted.
pub(super) struct Sorted(u32);

impl Sorted {
    /// Nothing: who comes next begins anew.
    pub(super) const NO: Self = Self(0);

    /// As far as `me`, who has the role, has come.
    pub(super) fn by<P: Platform>(me: Place<P>) -> Self {
        Self(me.node.resume.load(Relaxed))
    }

    /// Tells `next`, which is about to be the head in place of `from`. Before it is granted that.
    pub(super) fn tell<Q: Policy, P: Platform>(
        &mut self,
        policy: Q,
        from: &Waiter<P>,
        next: Place<P>,
    ) {
        if self.0 == 0 {
            return;
        }
        // Who sees the queue differently sorts it anew; of itself there is nothing to tell. `from`
        // may have a new user by now: then this is a bad guess, no more.
        if self.0 == next.id.bits() || !policy.groups(Waiting::of(from), Waiting::of(next.node)) {
            *self = Self::NO;
            return;
        }
        // Relaxed: it reads it as the head, which it learns to be afterwards.
        next.node.resume.store(self.0, Relaxed);
    }
}
