//! Waking by name, after the lock was released.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter};

use super::fair::Patience;
use super::mutex::Form;
use super::queue::Place;
use super::status;
use crate::arena;

/// How far behind a head one looks for who could come in.
const REACH: usize = 8;

/// Wakes the head of this name, as [`wake`]. From now on its patience runs, whether it has a CPU or
/// not; or the lock is kept for it.
#[cold]
#[inline(never)]
pub(super) fn call<P: Platform, F: Form>(name: u16, kept: bool) {
    if let Some(head) = arena::<P>().resolve_index(name.into()) {
        if kept { Patience::<F>::keep(head) } else { Patience::<F>::call(head) }
    }
    wake::<P>(name);
}

/// Wakes the waiter of this name, which the caller has read in the state that it released; and the
/// others whose index ends so. Touches nodes only (RW-3). A waiter that has gone on by itself may
/// be woken for nothing, or its node's next.
#[cold]
#[inline(never)]
pub(super) fn wake<P: Platform>(name: u16) {
    // Acquire: the sleeper's node, whose name the release has read; pairs with the release by which
    // it was written.
    P::fence(Acquire);
    let arena = arena::<P>();
    let name = u32::from(name);
    if let Some(target) = arena.reference(name) {
        P::unpark(target);
    }
    for index in (name..=arena.high_water()).step_by(1 << 16).skip(1) {
        if let Some(namesake) = arena.reference(index) {
            P::unpark(namesake);
        }
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
