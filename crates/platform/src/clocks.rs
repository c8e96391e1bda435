//! The clocks of a platform, and the counters of its CPUs.

use crate::Clock;

/// The clocks of a platform.
pub trait Clocks {
    /// The time of `clock`, in nanoseconds since its zero.
    fn now(clock: Clock) -> u64;

    /// The counter of the CPU that the caller runs on. All CPUs count at the same rate, in a unit
    /// of the platform, and reading the counter accesses no shared memory. The counters of two CPUs
    /// may differ by a constant, so a later reading on another CPU may be less.
    ///
    /// The reading is ordered: it is taken after all loads and read-modify-writes that precede it
    /// in the program are done, and before any later access begins. So a reading is a timestamp of
    /// these accesses, and accesses after a later reading see those before an earlier one. An
    /// earlier plain store may still be buffered; a `SeqCst` [`fence`](crate::Atomics::fence)
    /// completes it. The default is for platforms whose monotonic clock is read in this order.
    fn counter() -> u64 {
        Self::now(Clock::Monotonic)
    }

    /// Spins until [`counter`](Self::counter) is more than `value`, and returns the reading.
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
