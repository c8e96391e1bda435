//! A clock that costs little beside a lock: the time-stamp counter where there is one.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The rate of the counter, which the parent measures once and hands to each repetition.
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

    /// Ticks, and the nanoseconds that they took. `None`: [`now`] counts nanoseconds.
    fn counted() -> Option<(u64, u64)> {
        const TOGETHER_NS: u64 = 20_000_000;
        if cfg!(not(target_arch = "x86_64")) {
            return None;
        }
        // Closer than a part in 99; or, where the CPU is lost again and again, as good as may be.
        antiphon_linux::measure_ticks(TOGETHER_NS).or_else(|| {
            let (begin, first) = (Instant::now(), now());
            std::thread::sleep(Duration::from_nanos(10 * TOGETHER_NS));
            Some((now().wrapping_sub(first), begin.elapsed().as_nanos() as u64))
        })
    }

    /// Ticks in `ns` nanoseconds.
    pub fn of_ns(self, ns: f64) -> u64 {
        (ns * self.per_ns) as u64
    }

    /// Nanoseconds of `ticks`.
    pub fn to_ns(self, ticks: f64) -> f64 {
        ticks / self.per_ns
    }
}

/// The counter of this CPU. Linux keeps those of one machine together; where it can't, a difference
/// may come out negative, and [`since`] calls that none.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it, and Linux lets programs read it.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is ours to write, and every Linux has the clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

/// Ticks from `earlier` to `later`; 0 if the counter has gone back.
#[inline]
pub fn since(earlier: u64, later: u64) -> u64 {
    later.saturating_sub(earlier)
}
