//! A log-linear histogram of nanoseconds: 32 buckets per octave, so each time is known to within 3
//! %.
//!
//! It grows with its largest value: for times up to a millisecond it takes 4 KiB.

use alloc::vec::Vec;

/// The number of buckets per octave, as a power of two.
const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

/// Times, counted by length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Histogram {
    /// Creates an empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self { counts: Vec::new(), count: 0, sum_ns: 0, max_ns: 0 }
    }

    /// Counts one time.
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket(ns);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Returns the number of times that were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact sum of all times.
    #[must_use]
    pub const fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns the exact maximum; 0 if nothing was counted.
    #[must_use]
    pub const fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the time that `millipercent` thousandths of a percent of all counted times do not
    /// exceed (`50_000` is the median), within 3 %; 0 if nothing was counted.
    #[must_use]
    pub fn percentile_ns(&self, millipercent: u32) -> u64 {
        let wanted = u128::from(self.count) * u128::from(millipercent.min(100_000));
        let wanted = wanted.div_ceil(100_000).max(1) as u64;
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= wanted {
                return last(bucket).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// Returns how many times were at most `ns`, rounded up to the end of its bucket.
    #[must_use]
    pub fn within(&self, ns: u64) -> u64 {
        self.counts.iter().take(bucket(ns) + 1).sum()
    }

    /// Returns the buckets that are not empty, the shortest first: the longest time of each, and
    /// its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let used = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        used.map(|(bucket, count)| (last(bucket), *count))
    }
}

fn bucket(ns: u64) -> usize {
    if ns < SUB {
        return ns as usize;
    }
    let shift = ns.ilog2() - SUB_BITS;
    ((u64::from(shift) + 1) * SUB + (ns >> shift) - SUB) as usize
}

/// Returns the longest time of a bucket.
fn last(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    // In two steps, because the end of the last bucket is `u64::MAX`.
    let first = (SUB + bucket % SUB) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut before = 0;
        for ns in (0..100_000).chain((17..64).map(|bit| 1 << bit)).chain([u64::MAX]) {
            let at = bucket(ns);
            assert!(at >= before && last(at) >= ns && last(at) - ns <= ns / 31, "{ns}");
            before = at;
        }
    }

    #[test]
    fn percentiles_and_shares_are_of_all_that_was_counted() {
        let (mut one, mut other) = (Histogram::new(), Histogram::new());
        assert_eq!((one.percentile_ns(50_000), one.within(u64::MAX)), (0, 0));
        (1..=500).for_each(|ns| one.record(ns));
        (501..=1000).for_each(|ns| other.record(ns));
        one.merge(&other);
        for (millipercent, wanted) in [(50_000, 500), (99_000, 990), (100_000, 1000)] {
            assert!(one.percentile_ns(millipercent).abs_diff(wanted) <= wanted / 31);
        }
        assert_eq!((one.count(), one.max_ns(), one.sum_ns()), (1000, 1000, 500_500));
        assert!(one.within(100).abs_diff(100) <= 3);
        assert_eq!(one.buckets().map(|(_, count)| count).sum::<u64>(), 1000);
    }
}
