//! A clock that is cheap compared with a lock: the time-stamp counter, if there is one.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Rate of the counter, which the parent measures once and passes to each repetition.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ticks {
    per_ns: f64,
}

impl Ticks {
    /// Measures the rate against the monotonic clock; takes 20 ms.
    pub fn calibrate() -> Self {
        let (ticks, ns) = Self::counted().unwrap_or((1, 1));
        Self { per_ns: ticks as f64 / ns as f64 }
    }

    /// Returns ticks, and the nanoseconds that they took. `None` if [`now`] counts nanoseconds.
    fn counted() -> Option<(u64, u64)> {
        const TOGETHER_NS: u64 = 20_000_000;
        if cfg!(not(target_arch = "x86_64")) {
            return None;
        }
        // More precise than one part in 99; or, if the CPU is lost repeatedly, as precise as
        // possible.
        antiphon_linux::measure_ticks(TOGETHER_NS).or_else(|| {
            let (begin, first) = (Instant::now(), now());
            std::thread::sleep(Duration::from_nanos(10 * TOGETHER_NS));
            Some((now().wrapping_sub(first), begin.elapsed().as_nanos() as u64))
        })
    }

    /// Converts nanoseconds to ticks.
    pub fn of_ns(self, ns: f64) -> u64 {
        (ns * self.per_ns) as u64
    }

    /// Converts ticks to nanoseconds.
    pub fn to_ns(self, ticks: f64) -> f64 {
        ticks / self.per_ns
    }
}

/// Reads the counter of this CPU. Linux synchronises the counters of a machine; where it can't, a
/// difference may be negative, and [`since`] returns 0 for it.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has the instruction, and Linux lets programs use it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a local variable, and every Linux has this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Returns the ticks from `earlier` to `later`; 0 if the counter has gone back.
#[inline]
pub fn since(earlier: u64, later: u64) -> u64 {
    later.saturating_sub(earlier)
}
