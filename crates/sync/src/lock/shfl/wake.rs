//! Waking by name, after the lock was released.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter, WaiterRef};

use super::fair::Patience;
use super::mutex::Form;
use super::queue::Place;
use super::status;
use super::watch;
use crate::arena;

/// How far behind a head one looks for who could come in.
const REACH: usize = 8;

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
