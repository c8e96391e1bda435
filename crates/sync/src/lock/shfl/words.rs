//! The trait [`Words`]: the accesses of waiters to a lock's own words. `exclusive.rs` implements it
//! for the mutex, `rw/head.rs` for the readers-writer lock. Waiting is the same for all
//! ([`contended`](super::contended)).

use antiphon_platform::{Budget, Platform, Traced, Waiter};

use super::fence::Fence;
use super::form::Form;
use super::queue::{Place, TailId};
use super::status;
use super::turn::Ask;
use crate::policy::Policy;

/// An object that threads wait for in a queue: a lock, or a mode of holding it.
pub(super) trait Words<P: Platform, Q: Policy, F: Form>: Sized {
    /// Whether waiters wait for a thread that holds the lock, so that it is likely to be free soon.
    const HELD_BRIEFLY: bool = true;
    /// Whether waiters learn that sections are long, and sleep at once then (LINGER-5). False where
    /// each owner joins the queue: if all slept there, each hand-over would be a wake, and would be
    /// taken for a long section.
    const LEARNS: bool = false;

    /// Whether waiters of real-time priority are served first.
    const URGENT: bool = F::HEAD_SLEEPS;

    /// Returns the end of the queue.
    fn tail(&self) -> &TailId<P>;

    /// Returns the policy that the queue is sorted by at present.
    fn policy(&self) -> Q;

    /// Notes what the caller wants in its node, which is in no queue yet.
    fn sign(&self, _me: &Waiter<P>) {}

    /// Returns whether a head sleeps, or was called and has not come. May be stale at once.
    fn is_called(&self) -> bool {
        self.named() != 0
    }

    /// Returns the low bits of the index of a head that sleeps, or was called and has not come; or
    /// of the owner that will hand the lock over; or 0.
    fn named(&self) -> u16;

    /// Returns the urgency of a waiter of real-time priority; 0 for any other waiter.
    fn urgency_of(node: &Waiter<P>) -> u32 {
        status::urgency(node).into()
    }

    /// Returns whether the head sleeps, and a release will call it. May be stale at once.
    fn head_sleeps(&self) -> bool;

    /// Announces the caller, which is the head and about to spin.
    fn announce(&self) {}

    /// Returns whether the head could not have the lock now; may be stale at once.
    fn is_held(&self) -> bool;

    /// Spins within the budget until the lock is seen free; returns whether it was.
    fn spin(&self, budget: Budget) -> bool;

    /// Takes the lock as an arriving waiter, if it is neither held nor kept for another waiter.
    fn take_as_comer(&self) -> bool;

    /// Takes the lock from behind a head that was called and does not come, if arriving waiters can
    /// hold the lock together.
    fn take_beside_head(&self) -> bool {
        false
    }

    /// Returns whether the head that [`take_beside_head`](Self::take_beside_head) overtook may not
    /// run for long.
    fn is_head_excused(&self) -> bool {
        false
    }

    /// Takes the lock if it is free, whichever waiter it is kept for.
    fn take_any(&self) -> bool;

    /// Takes the lock as the head, if it is not held; this fulfils a request for fairness.
    fn take_as_head(&self, me: Place<P>) -> bool;

    /// Called by the head, which runs: asks for fairness, so that the next release is for the head.
    fn insist(&self);

    /// Called by the head: withdraws its request for fairness.
    fn give_up(&self);

    /// Called by an owner that waited behind a head that does not come: nothing is kept for that
    /// head from now on, for some time.
    fn excuse_head(&self);

    /// Names the caller, which is the head, as the waiter to wake, and asks the owner to wake it.
    fn ask_for_wake(&self, me: Place<P>, fence: &mut Fence) -> Ask;

    /// Removes the name of the caller, which is the head and has the lock, or gives up.
    fn unname(&self);

    /// Called by an owner: names the sleeping waiter that will be the next head, and makes sure
    /// that a release wakes it. Returns `false` if the waiter could have the lock at once, and must
    /// be woken.
    fn leave_asleep(&self, next: Place<P>) -> bool;

    /// Called by an owner that has made `_next` the head and woken it, because it could have the
    /// lock at once: wakes the waiters behind it that also could.
    fn wake_beside(&self, _next: &Waiter<P>) {}

    /// Returns whether what [`leave_asleep`](Self::leave_asleep) did still holds now that the
    /// waiter is the head: no thread has woken it before. Matters only for locks where other
    /// threads could.
    fn is_left_asleep(&self, _next: Place<P>) -> bool {
        true
    }

    /// Returns the owner's name if the owner will hand the lock over, so that the lock does not
    /// come free. May be stale at once.
    fn handing(&self) -> Option<u16> {
        None
    }

    /// Called by the owner, which is the first of the queue: keeps its place, and hands the lock
    /// over instead of releasing it. `handed`: the owner got the lock by such a hand-off, too.
    /// Returns `false`, and does nothing, if the lock will be released.
    fn keep_place(&self, _me: Place<P>, _handed: bool, _policy: Q) -> bool {
        false
    }

    /// Puts the caller behind waiters of its socket; returns `false` if it must join the queue.
    fn join_cohort(&self, _me: Place<P>) -> bool {
        false
    }

    /// Returns the queue place of the caller, an owner to which the lock was handed.
    fn place_of(&self, me: Place<P>) -> Place<P> {
        me
    }

    /// Called by the first of the queue: puts the waiters that stand behind `me` outside the queue
    /// into it.
    fn disband(&self, _me: Place<P>) {}

    /// Returns whether the caller, the head, must leave the queue and wait elsewhere; may be stale
    /// at once.
    fn waits_elsewhere(&self, _me: Place<P>) -> bool {
        false
    }

    /// Returns the object that the caller waits for, as reported to a tracer.
    fn traced(&self) -> Traced;
}
