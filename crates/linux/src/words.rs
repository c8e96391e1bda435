//! Many sleepers on one word, in places that can be woken separately: the futex on the low half of
//! a 64-bit word, with one bit of its bitset for each place.

use core::sync::atomic::AtomicU32;

use antiphon_platform::{Deadline, Parked};

use crate::futex::{self, Whose};
use crate::{U64, crowd, section};

/// The index of the low half in the word.
const LOW: usize = if cfg!(target_endian = "big") { 1 } else { 0 };

/// See [`WordWaits::wait_on`](antiphon_platform::WordWaits::wait_on).
pub(crate) fn wait(word: &U64, low: u32, place: u32, deadline: Option<Deadline>) -> Parked {
    // SECTION-3.
    section::interrupt();
    futex::wait(half(word), (Whose::Private, 1 << place), low, deadline).parked()
}

/// See [`WordWaits::wake_on`](antiphon_platform::WordWaits::wake_on).
pub(crate) fn wake(word: *const U64, places: u32, count: u32) -> u32 {
    crowd::wake_many(count, || futex::wake(half(word), (Whose::Private, places), count))
}

fn half(word: *const U64) -> *const AtomicU32 {
    word.cast::<AtomicU32>().wrapping_add(LOW)
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;
    use std::thread;

    use antiphon_platform::{Atomic, Clock};

    use super::*;

    #[test]
    fn places_are_woken_by_themselves_and_counted() {
        let word = U64::ZERO;
        word.store(7 << 32 | 5, Relaxed);
        let late = Some(Deadline { clock: Clock::Monotonic, ns: 0 });
        assert_eq!(wait(&word, 6, 0, None), Parked::Woken, "it is not 6");
        assert_eq!(wait(&word, 5, 31, late), Parked::TimedOut);
        // Repeats until `count` were woken; woken threads check the word and sleep again.
        let wake_all = |places, count| {
            let mut woken = 0;
            while woken < count {
                woken += wake(&word, places, count - woken);
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            for place in [0, 31, 31] {
                let word = &word;
                scope.spawn(move || {
                    while word.load(Relaxed) as u32 == 5 {
                        let _ = wait(word, 5, place, None);
                    }
                });
            }
            wake_all(1 << 31, 2);
            wake_all(1, 1);
            assert_eq!(wake(&word, 1 << 7, u32::MAX), 0, "nobody is there");
            word.store(6, Relaxed);
            wake(&word, 1 << 31 | 1, u32::MAX);
        });
    }
}
