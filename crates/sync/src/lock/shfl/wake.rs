//! Waking by name, after the lock was released.

use core::sync::atomic::Ordering::Acquire;

use antiphon_platform::Platform;

/// Wakes the waiter of this name, which the caller has read in the state that it released; and the
/// others whose index ends so. Touches nodes only (RW-3). A waiter that has gone on by itself may
/// be woken for nothing, or its node's next.
#[cold]
#[inline(never)]
pub(super) fn wake<P: Platform>(name: u16) {
    // Acquire: the sleeper's node, whose name the release has read; pairs with the release by which
    // it was written.
    P::fence(Acquire);
    let arena = P::arena();
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
