//! Trials of measurements: the pause before a trial, the time that a receiver notes, statistics.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_metal::x86::clock;

/// Time that the target gets to halt again, in nanoseconds.
pub const SETTLE_NS: u64 = 5_000;

/// Lets other CPUs run until they are idle.
pub fn settle() {
    clock::delay_ns(SETTLE_NS);
}

/// Waits until a time was noted, and takes it.
pub fn noted(place: &AtomicU64) -> u64 {
    loop {
        // Acquire: what came before the note; pairs with the release of those notes that publish
        // something.
        match place.load(Acquire) {
            0 => core::hint::spin_loop(),
            time => {
                place.store(0, Relaxed);
                return time;
            }
        }
    }
}
