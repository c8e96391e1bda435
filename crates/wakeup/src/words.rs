//! The atomic words of `core`, for kernels that have no platform of Antiphon.

use core::sync::atomic::{self, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use antiphon_platform::{Atomics, CoreWord, Turns};

/// The words of `core`. A wait of theirs spins: this crate waits only for handlers of other CPUs.
#[derive(Clone, Copy, Debug)]
pub struct Words;

/// What a turn of a bounded spin counts for, in nanoseconds.
const TURN_NS: u32 = 10;

impl Atomics for Words {
    type U8 = CoreWord<AtomicU8, Turns<TURN_NS>>;
    type U16 = CoreWord<AtomicU16, Turns<TURN_NS>>;
    type U32 = CoreWord<AtomicU32, Turns<TURN_NS>>;
    type U64 = CoreWord<AtomicU64, Turns<TURN_NS>>;

    #[inline]
    fn fence(order: Ordering) {
        // mutant: the models have words of their own.
        atomic::fence(order);
    }
}
