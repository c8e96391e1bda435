//! A clock that is cheap compared with a lock: the time-stamp counter, if there is one.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The counter of this CPU. Linux synchronises the counters of a machine; where it can't, a
/// difference may be negative, and [`since`] returns 0 for it.
pub use antiphon_linux::ticks as now;

/// Rate of the counter, which the parent measures once and passes to each repetition.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ticks {
    per_ns: f64,
}

impl Ticks {
    /// Measures the rate against the monotonic clock; takes 20 ms.
    pub fn calibrate() -> Self {
        const TOGETHER_NS: u64 = 20_000_000;
        // More precise than one part in 99; or, if the CPU is lost repeatedly, as precise as
        // possible.
        let counted = antiphon_linux::measure_ticks(TOGETHER_NS).unwrap_or_else(|| {
            let (begin, first) = (Instant::now(), now());
            std::thread::sleep(Duration::from_nanos(10 * TOGETHER_NS));
            (now().wrapping_sub(first), begin.elapsed().as_nanos() as u64)
        });
        Self { per_ns: counted.0 as f64 / counted.1 as f64 }
    }

    /// Converts nanoseconds to ticks.
    pub fn of_ns(self, ns: f64) -> u64 {
        (ns * self.per_ns) as u64
    }

    /// Converts ticks to nanoseconds.
    pub fn to_ns(self, ticks: f64) -> f64 {
        ticks / self.per_ns
    }

    /// Returns the nanoseconds between two readings.
    pub fn ns(self, from: u64, to: u64) -> f64 {
        self.to_ns(since(from, to) as f64)
    }
}

/// Returns the ticks from `earlier` to `later`; 0 if the counter has gone back.
#[inline]
pub fn since(earlier: u64, later: u64) -> u64 {
    later.saturating_sub(earlier)
}
