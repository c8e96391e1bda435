//! Waking by name, after the lock was released.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Clock, Platform, Waiter, WaiterRef};

use super::fair::Patience;
use super::mutex::Form;
use super::queue::Place;
use super::status;
use super::watch;
use crate::arena;

/// How far behind a head one looks for who could come in.
const REACH: usize = 8;
/// How many waiters are woken together with a head, at most.
const TOGETHER: u32 = 16;

/// Wakes the head of this name, as [`wake`]. From now on its patience runs, whether it has a CPU or
/// not; or the lock is kept for it. One that may not run for long is excused: nothing is kept for
/// it, and those that overtake it see to it that others may (`watch.rs`).
#[cold]
#[inline(never)]
pub(super) fn call<P: Platform, F: Form>(name: u16, kept: bool) {
    let head = arena::<P>().resolve_index(name.into());
    if let Some(head) = head {
        if kept { Patience::<F>::keep(head) } else { Patience::<F>::call(head) }
    }
    if !wake_by::<P>(name, watch::wake_head::<P>)
        && let Some(head) = head
    {
        Patience::<F>::excuse(head);
    }
}

/// Wakes the waiter of this name, which the caller has read in the state that it released; and the
/// others whose index ends so. Touches nodes only (RW-3). A waiter that has gone on by itself may
/// be woken for nothing, or its node's next.
#[cold]
#[inline(never)]
pub(super) fn wake<P: Platform>(name: u16) {
    wake_by::<P>(name, |waiter| {
        P::unpark(waiter);
        true
    });
}

/// As [`wake`], in the way of `unpark`, whose answer it returns.
fn wake_by<P: Platform>(name: u16, unpark: impl FnOnce(WaiterRef) -> bool) -> bool {
    // Acquire: the sleeper's node, whose name the release has read; pairs with the release by which
    // it was written.
    P::fence(Acquire);
    let arena = arena::<P>();
    let name = u32::from(name);
    let woken = arena.reference(name).is_none_or(unpark);
    for index in (name..=arena.high_water()).step_by(1 << 16).skip(1) {
        if let Some(namesake) = arena.reference(index) {
            P::unpark(namesake);
        }
    }
    woken
}

/// Wakes the waiter behind the caller, who is the head, ahead of its turn, if that is asleep and
/// worth it.
pub(super) fn wake_ahead<P: Platform>(me: Place<P>, is_worth_it: impl FnOnce() -> bool) {
    if let Some(next) = me.next().filter(|next| next.sleeps())
        && is_worth_it()
        && let Some(next) = arena::<P>().reference(next.id.index())
    {
        P::unpark(next);
    }
}

/// Notes that the caller has a lock, by its address: it was the head of the queue.
pub(super) fn note_taken<P: Platform>(lock: usize) {
    P::local(|local| {
        local.took.store(lock as u64, Relaxed);
        local.took_at.store(P::now(Clock::Monotonic), Relaxed);
    });
}

/// How many waiters are to be woken together with the head of a lock that the caller has just
/// released. Some where the caller, which was the head, has held it for less than half of what a
/// wake takes: they come up together, and the lock goes from one to the next (`handover.rs`). Else
/// each of them would wait for the wake of the one before. None where CPUs are short.
pub(super) fn count_together<P: Platform>(lock: usize) -> u32 {
    let [took, at] = P::local(|local| [&local.took, &local.took_at].map(|word| word.load(Relaxed)));
    let held = P::now(Clock::Monotonic).saturating_sub(at);
    let is_short = took == lock as u64 && held.saturating_mul(2) < P::sleep_cost_ns().into();
    if is_short && !P::crowded() { TOGETHER.min(P::cpus() / 2) } else { 0 }
}

/// Wakes those that sleep among the first `count` behind this head. Touches nodes only, as
/// [`wake_behind`].
pub(super) fn wake_next<P: Platform>(head: &Waiter<P>, count: u32) {
    // Acquire: as in `Place::next`.
    let mut at = Place::<P>::at(head.next.load(Acquire));
    for _ in 0..count {
        let Some(place) = at else { return };
        if place.sleeps()
            && let Some(sleeper) = arena::<P>().reference(place.id.index())
        {
            P::unpark(sleeper);
        }
        at = place.next();
    }
}

/// Wakes the first reader that sleeps behind this head; `false` if none is seen. Touches nodes
/// only; those may stand in another queue by now, and then somebody looks up for nothing.
pub(super) fn wake_behind<P: Platform>(head: &Waiter<P>) -> bool {
    // Acquire: as in `Place::next`.
    let mut at = Place::<P>::at(head.next.load(Acquire));
    for _ in 0..REACH {
        let Some(place) = at else { return false };
        // Relaxed: written before its waiter joined the queue, whose links are acquired.
        if status::load(place.node).parked() && place.node.wants.load(Relaxed) == 0 {
            return arena::<P>().reference(place.id.index()).map(P::unpark).is_some();
        }
        at = place.next();
    }
    false
}
