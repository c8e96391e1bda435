//! Hold times of threads, for locks that measure them ([`ShflOwned`](super::ShflOwned)).

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Clock, Platform};

/// Hold times are in units of 1024 ns.
const UNIT_BITS: u32 = 10;
/// The time that a thread has held counts half after this many units: 17 ms.
const HALF_LIFE: u32 = 1 << 14;

/// Returns how long the calling thread has held locks that measure it, halved for each half-life
/// that has passed; in units of 1024 ns.
pub(crate) fn held<P: Platform>() -> u32 {
    P::local(|local| {
        let now = now::<P>();
        let halves = now.wrapping_sub(local.held_at.load(Relaxed)) / HALF_LIFE;
        let held = local.held.load(Relaxed).checked_shr(halves).unwrap_or(0);
        if halves > 0 {
            local.held.store(held, Relaxed);
            local.held_at.store(now, Relaxed);
        }
        held
    })
}

/// Returns the present time in units of 1024 ns; wraps around after 73 minutes.
pub(super) fn now<P: Platform>() -> u32 {
    (P::now(Clock::Monotonic) >> UNIT_BITS) as u32
}
