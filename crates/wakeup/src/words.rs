//! The atomic words of `core`, for kernels that have no platform of Antiphon.

use core::hint::spin_loop;
use core::sync::atomic::{self, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomic, Atomics, Budget, CoreWord, Spins, Word};

/// The words of `core`. A wait of theirs spins: this crate waits only for handlers of other CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Words;

/// What a turn of a bounded spin counts for, in nanoseconds.
const TURN_NS: u32 = 10;

impl Atomics for Words {
    type U8 = CoreWord<AtomicU8, Turns>;
    type U16 = CoreWord<AtomicU16, Turns>;
    type U32 = CoreWord<AtomicU32, Turns>;
    type U64 = CoreWord<AtomicU64, Turns>;

    #[inline]
    fn fence(order: Ordering) {
        // mutant: the models have words of their own.
        atomic::fence(order);
    }
}

/// How CPUs spin without a clock: a turn counts for ten nanoseconds.
#[derive(Debug)]
pub struct Turns;

impl Spins for Turns {
    #[inline]
    fn wait_while<W: Word>(word: &impl Atomic<W>, order: Ordering, keep: impl Fn(W) -> bool) -> W {
        loop {
            let value = word.load(order);
            if !keep(value) {
                return value;
            }
            spin_loop();
        }
    }

    fn spin_while<W: Word>(
        word: &impl Atomic<W>,
        order: Ordering,
        budget: Budget,
        keep: impl Fn(W) -> bool,
    ) -> Result<W, W> {
        for _ in 0..budget.ns / TURN_NS {
            let value = word.load(order);
            if !keep(value) {
                return Ok(value);
            }
            spin_loop();
        }
        let value = word.load(order);
        if keep(value) { Err(value) } else { Ok(value) }
    }
}
