//! The accesses of waiters to a lock's own words. Each kind of lock has its own: `exclusive.rs` the
//! mutex's, `rw/head.rs` those of the readers-writer lock. The waiting is the same for all
//! ([`contended`](super::contended)).

use antiphon_platform::{Budget, Platform, Traced, Waiter};

use super::fence::Fence;
use super::form::Form;
use super::queue::{Place, TailId};
use super::status;
use super::turn::Ask;
use crate::policy::Policy;

/// A thing to wait for in a queue: a lock, or a way to hold it.
pub(super) trait Words<P: Platform, Q: Policy, F: Form>: Sized {
    /// Whether the thread that is waited for holds the lock, so that it is likely to be free soon.
    const HELD_BRIEFLY: bool = true;
    /// Whether waiters learn that sections are long, and sleep at once then (LINGER-5). Not where
    /// each owner stands in line: if all slept there, each hand-over would be a wake, and would be
    /// taken for a long section.
    const LEARNS: bool = false;

    /// Whether waiters of real-time priority are served first.
    const URGENT: bool = F::HEAD_SLEEPS;

    /// The end of the queue.
    fn tail(&self) -> &TailId<P>;

    /// The policy that the queue is sorted by, at present.
    fn policy(&self) -> Q;

    /// Notes the caller's wish in its node, which is in no queue yet.
    fn sign(&self, _me: &Waiter<P>) {}

    /// Whether a head sleeps, or was called and has not come. May be stale at once.
    fn is_called(&self) -> bool {
        self.named() != 0
    }

    /// The low bits of the index of that head, or of the owner that will hand the lock over; or 0.
    fn named(&self) -> u16;

    /// How urgent a waiter of real-time priority is; 0 if its priority is not real-time.
    fn urgency_of(node: &Waiter<P>) -> u32 {
        status::urgency(node).into()
    }

    /// Whether the head sleeps, and a release will call it. May be stale at once.
    fn head_sleeps(&self) -> bool;

    /// Announces the head, which is the caller and about to spin.
    fn announce(&self) {}

    /// Whether the head could not have the lock now; may be stale at once.
    fn is_held(&self) -> bool;

    /// Spins until the lock is seen not to be held, within the budget; returns whether it was seen
    /// so.
    fn spin(&self, budget: Budget) -> bool;

    /// Takes the lock as an arriving waiter, if it is neither held nor kept for another waiter.
    fn take_as_comer(&self) -> bool;

    /// Takes the lock from behind a head that was called and does not come, if arriving waiters may
    /// come in beside each other.
    fn take_beside_head(&self) -> bool {
        false
    }

    /// Whether the head that was overtaken in this way may not run for long.
    fn is_head_excused(&self) -> bool {
        false
    }

    /// Takes the lock if it is free, whichever waiter it is kept for.
    fn take_any(&self) -> bool;

    /// Takes the lock as the head, if it is not held; a wish for fairness is then fulfilled.
    fn take_as_head(&self, me: Place<P>) -> bool;

    /// Called by the head, which runs: asks for fairness, so that the next release is for the head.
    fn insist(&self);

    /// Called by the head: takes its wish for fairness back.
    fn give_up(&self);

    /// Called by an owner that waited behind a head that does not come: nothing is kept for that
    /// head any longer, nor for some time to come.
    fn excuse_head(&self);

    /// Names the caller, the head, as the one to wake, and asks the owner to do so.
    fn ask_for_wake(&self, me: Place<P>, fence: &mut Fence) -> Ask;

    /// Takes the name away: the caller, the head, has come, or gives up.
    fn unname(&self);

    /// Called by an owner: names the sleeping waiter that will be the next head, and makes sure
    /// that a release wakes it. `false` if the waiter could have the lock at once, and is to be
    /// woken.
    fn leave_asleep(&self, next: Place<P>) -> bool;

    /// Called by an owner that has made `_next` the head and woken it, because it could have the
    /// lock at once: wakes those behind that could, too.
    fn wake_beside(&self, _next: &Waiter<P>) {}

    /// Whether that still holds now that the waiter is the head: no thread has woken it before.
    /// Only for locks where threads other than the caller could.
    fn is_left_asleep(&self, _next: Place<P>) -> bool {
        true
    }

    /// The owner's name, if the owner will hand the lock over: the lock does not come free then.
    /// May be stale at once.
    fn handing(&self) -> Option<u16> {
        None
    }

    /// Called by the owner, which is the first of the queue: keeps its place, and hands the lock
    /// over instead of releasing it. `handed`: the owner got the lock by such a hand-off, too.
    /// `false`, and nothing done, if the lock will be released.
    fn keep_place(&self, _me: Place<P>, _handed: bool, _policy: Q) -> bool {
        false
    }

    /// Puts the caller behind waiters of its socket; `false` if it is to join the queue.
    fn join_cohort(&self, _me: Place<P>) -> bool {
        false
    }

    /// The place in the queue of the caller, an owner to which the lock was handed.
    fn place_of(&self, me: Place<P>) -> Place<P> {
        me
    }

    /// Called by the first of the queue: the waiters that stand behind `me` outside the queue stand
    /// in it from now on.
    fn disband(&self, _me: Place<P>) {}

    /// Whether the caller, the head, is to leave the queue and wait elsewhere; may be stale at
    /// once.
    fn waits_elsewhere(&self, _me: Place<P>) -> bool {
        false
    }

    /// The object that the caller waits for, as reported to a tracer.
    fn traced(&self) -> Traced;
}
