//! Pseudo-random numbers, one sequence for each thread: Marsaglia's 32-bit xorshift.
//!
//! Good enough only for breaking ties and picking victims. The thread that survives a fork
//! continues its parent's sequence.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Atomic;

use crate::{local, thread, tsc};

/// The next number of the calling thread's sequence; never zero.
pub(crate) fn next() -> u32 {
    local::with(|thread| {
        let seed = thread.local.seed.load(Relaxed);
        let number = step(if seed == 0 { first() } else { seed });
        thread.local.seed.store(number, Relaxed);
        number
    })
}

fn step(mut number: u32) -> u32 {
    number ^= number << 13;
    number ^= number >> 17;
    number ^ number << 5
}

#[cold]
fn first() -> u32 {
    let id = thread::current().0;
    let mixed = (tsc::ticks() ^ u64::from(id) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Zero would stay zero for ever.
    (mixed >> 32) as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_sequences_of_their_own_that_do_not_repeat_soon() {
        let numbers = || (0..100).map(|_| next()).collect::<Vec<_>>();
        let here = numbers();
        let there = std::thread::spawn(numbers).join().unwrap_or_default();
        assert_ne!(here, there);
        let mut unique = here.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), here.len());
    }
}
