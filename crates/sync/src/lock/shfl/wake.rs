//! Waking waiters by name, after the lock was released.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Clock, Platform, Waiter, WaiterRef};

use super::fair::Patience;
use super::form::Form;
use super::queue::Place;
use super::status;
use super::watch;
use crate::arena;

/// How many places behind a head are searched for a waiter that could acquire the lock.
const REACH: usize = 8;
/// The most waiters that are woken together with a head.
const TOGETHER: u32 = 16;

/// Wakes the head of this name, as [`wake`] does. From now on the head's patience runs, even if it
/// has no CPU; or, if `kept`, the lock is kept for it. A head that is not found asleep may not run
/// for long, and is excused: nothing is kept for it, and the waiters that overtake it wake others
/// to keep watch (`watch.rs`).
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

/// Wakes the waiter of this name, which the caller has read in the state that it released; and all
/// other waiters whose index ends in the same bits. Touches only nodes (RW-3). The wake may be
/// spurious: the waiter may have gone on by itself, and its node may serve another wait.
#[cold]
#[inline(never)]
pub(super) fn wake<P: Platform>(name: u16) {
    wake_by::<P>(name, |waiter| {
        P::unpark(waiter);
        true
    });
}

/// Does what [`wake`] does; `unpark` wakes the named waiter, and its result is returned.
fn wake_by<P: Platform>(name: u16, unpark: impl FnOnce(WaiterRef) -> bool) -> bool {
    // Acquire: the sleeper's node, whose name the release has read; pairs with the release by which
    // the name was written; a name on a line is ordered by the fences of LINE-3.
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

/// Wakes the waiter behind the caller ahead of its turn, if it sleeps and `is_worth_it`. The caller
/// is the head.
pub(super) fn wake_ahead<P: Platform>(me: Place<P>, is_worth_it: impl FnOnce() -> bool) {
    if let Some(next) = me.next().filter(|next| next.sleeps())
        && is_worth_it()
        && let Some(next) = arena::<P>().reference(next.id.index())
    {
        P::unpark(next);
    }
}

/// Notes that the caller has the lock at this address, and was the head of its queue.
pub(super) fn note_taken<P: Platform>(lock: usize) {
    P::local(|local| {
        local.took.store(lock as u64, Relaxed);
        local.took_at.store(P::now(Clock::Monotonic), Relaxed);
    });
}

/// Returns how many waiters to wake together with the head of a lock that the caller has just
/// released. The number is above 0 if the caller was the head and has held the lock for less than
/// half of the time that a wake takes: then the waiters wake up together, and the lock goes from
/// one to the next (`handover.rs`). Otherwise each would wait for the wake of the waiter before it.
/// 0 where CPUs are short.
pub(super) fn count_together<P: Platform>(lock: usize) -> u32 {
    let [took, at] = P::local(|local| [&local.took, &local.took_at].map(|word| word.load(Relaxed)));
    let held = P::now(Clock::Monotonic).saturating_sub(at);
    let is_short = took == lock as u64 && held.saturating_mul(2) < P::sleep_cost_ns().into();
    if is_short { count_moving::<P>() } else { 0 }
}

/// Returns how many waiters to wake together behind a head that goes to wait elsewhere, and makes
/// the next waiter the head: those will go too, and each would be woken by the waiter before it. 0
/// where CPUs are short.
pub(super) fn count_moving<P: Platform>() -> u32 {
    if P::crowded() { 0 } else { TOGETHER.min(P::cpus() / 2) }
}

/// Wakes the sleeping waiters among the first `count` behind this head. Touches only nodes, as
/// [`wake_behind`] does.
pub(super) fn wake_next<P: Platform>(head: &Waiter<P>, count: u32) {
    // Acquire: as in `Place::next`.
    // mutant: a sleeper that is missed is woken later, by the waiter before it.
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

/// Wakes the first reader that sleeps behind this head; returns `false` if none is seen. Touches
/// only nodes; these may stand in another queue by now, and then the wake is spurious.
pub(super) fn wake_behind<P: Platform>(head: &Waiter<P>) -> bool {
    // Acquire: as in `Place::next`.
    // mutant: a sleeper that is missed is woken later, by the waiter before it.
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
