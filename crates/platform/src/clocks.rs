//! The time, and the counters of CPUs.

use crate::Clock;

/// The clocks of a platform.
pub trait Clocks {
    /// Nanoseconds of `clock`.
    fn now(clock: Clock) -> u64;

    /// The counter of the CPU that the caller runs on. All CPUs count at one rate, in a unit of the
    /// platform's, and without an access to memory that others share. Their counters may differ by
    /// a constant, so what is read later, on another CPU, may be less.
    ///
    /// It is read when all loads and read-modify-writes that come earlier in the program are done,
    /// and before any later access begins: so a reading says when they were, and what was done
    /// before an earlier reading is seen by what comes after a later one. An earlier plain store
    /// may still be on its way; a `SeqCst` [`fence`](crate::Atomics::fence) has it done. The
    /// default is for platforms whose monotonic clock is read so.
    fn counter() -> u64 {
        Self::now(Clock::Monotonic)
    }

    /// Spins until [`counter`](Self::counter) is more than `value`, and returns what it is then.
    fn counter_after(value: u64) -> u64 {
        loop {
            let now = Self::counter();
            if now > value {
                return now;
            }
            core::hint::spin_loop();
        }
    }
}
