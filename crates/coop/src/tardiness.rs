//! Histograms of how late timers were.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How late timers were dispatched: a histogram of counts. Every four buckets double the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tardiness {
    buckets: [u64; BUCKETS],
    most_ns: u64,
}

const BUCKETS: usize = 128;
/// Times below this, in nanoseconds, share one bucket.
const FINEST_NS: u64 = 256;

/// Returns the bucket of a time.
fn bucket(ns: u64) -> usize {
    if ns < FINEST_NS {
        return 0;
    }
    let doubles = ns.ilog2() - FINEST_NS.ilog2();
    let quarter = ns >> (ns.ilog2() - 2) & 3;
    (1 + doubles as usize * 4 + quarter as usize).min(BUCKETS - 1)
}

/// Returns the upper limit of a bucket, exclusive, in nanoseconds.
fn end_ns(bucket: usize) -> u64 {
    let Some(at) = bucket.checked_sub(1) else { return FINEST_NS };
    (FINEST_NS << (at / 4)) / 4 * (at as u64 % 4 + 5)
}

impl Tardiness {
    /// Returns the number of timers.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the quantile `part` (0.0 to 1.0): that part of the timers was no later than this, in
    /// nanoseconds, to within a quarter. 0 without timers.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let wanted = (self.count() as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let at = self.buckets.iter().position(|&count| {
            seen += count;
            seen >= wanted
        });
        at.map_or(0, |at| end_ns(at).min(self.most_ns))
    }

    /// Returns the largest delay, in nanoseconds.
    #[must_use]
    pub const fn most_ns(&self) -> u64 {
        self.most_ns
    }
}

impl fmt::Display for Tardiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        write!(
            f,
            "{} timers: p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms late",
            self.count(),
            ms(self.quantile_ns(0.5)),
            ms(self.quantile_ns(0.99)),
            ms(self.most_ns)
        )
    }
}

/// Counts that one thread adds to while others read them.
pub(super) struct Tally {
    buckets: [AtomicU64; BUCKETS],
    most_ns: AtomicU64,
}

impl Tally {
    pub(super) const fn new() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], most_ns: AtomicU64::new(0) }
    }

    /// Counts one more callback. Called by one thread at a time.
    pub(super) fn add(&self, late_ns: u64) {
        let count = &self.buckets[bucket(late_ns)];
        // Relaxed, all: counters for a report, with one writer.
        count.store(count.load(Relaxed) + 1, Relaxed);
        if late_ns > self.most_ns.load(Relaxed) {
            self.most_ns.store(late_ns, Relaxed);
        }
    }

    pub(super) fn read(&self) -> Tardiness {
        Tardiness {
            buckets: std::array::from_fn(|at| self.buckets[at].load(Relaxed)),
            most_ns: self.most_ns.load(Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_bucket_that_ends_after_it() {
        for ns in (0..100_000).chain([1 << 30, (1 << 31) - 1]) {
            let at = bucket(ns);
            assert!(ns < end_ns(at) && (at == 0 || ns >= end_ns(at - 1)), "{ns} in {at}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_right_to_within_a_fourth() {
        let tally = Tally::new();
        assert_eq!(tally.read().quantile_ns(0.5), 0);
        (1..=1000).for_each(|at| tally.add(at * 1000));
        let read = tally.read();
        assert_eq!((read.count(), read.most_ns()), (1000, 1_000_000));
        for (part, ns) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
            let told = read.quantile_ns(part);
            assert!(told >= ns && told <= ns + ns / 4, "{part}: {told}");
        }
    }
}
