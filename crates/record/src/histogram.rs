//! Log-linear histograms of nanoseconds, with sixteen buckets per power of two.
//!
//! Values below 16 have a bucket each; from there on a bucket is a sixteenth of its power of two
//! wide, so a value is known within 1/16 of itself. The last bucket holds all above 2⁴² ns (73
//! min).

/// Buckets of a histogram.
pub const BUCKETS: usize = 16 + (TOP - 4) * 16;
/// Values from two to this power on share the last bucket.
const TOP: usize = 42;

/// The bucket that counts `ns`.
#[must_use]
pub const fn bucket(ns: u64) -> usize {
    if ns < 16 {
        return ns as usize;
    }
    let power = ns.ilog2() as usize;
    if power >= TOP {
        return BUCKETS - 1;
    }
    16 + (power - 4) * 16 + (ns >> (power - 4)) as usize % 16
}

/// The smallest value, in nanoseconds, that `bucket` counts.
#[must_use]
pub const fn bucket_floor(bucket: usize) -> u64 {
    if bucket < 16 {
        return bucket as u64;
    }
    let (power, part) = ((bucket - 16) / 16, (bucket - 16) % 16);
    (16 + part as u64) << power
}

/// Counts by length, with their sum and longest. Equal histograms add up bucket by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Counts by bucket; [`bucket_floor`] gives the values of a bucket.
    pub counts: Vec<u64>,
    /// The sum of all values, in nanoseconds.
    pub sum_ns: u64,
    /// The largest value, in nanoseconds; exact.
    pub max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], sum_ns: 0, max_ns: 0 }
    }
}

impl Histogram {
    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns whether the histogram has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Counts one value.
    pub fn count_one(&mut self, ns: u64) {
        self.counts[bucket(ns)] += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Number of values of at least `ns`, exact to the bucket, and a lower bound of their sum.
    #[must_use]
    pub fn at_least(&self, ns: u64) -> (u64, u64) {
        let long = self.counts.iter().enumerate().skip(bucket(ns));
        long.fold((0, 0), |(count, sum), (at, &more)| {
            (count + more, sum + more.saturating_mul(bucket_floor(at)))
        })
    }

    /// Adds all values of `other`.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The value, in nanoseconds, that `share` (0 to 1) of the values do not exceed, within 1/16 of
    /// it; `None` if nothing was counted.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = ((share.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        if at == BUCKETS - 1 {
            return Some(self.max_ns);
        }
        let (floor, next) = (bucket_floor(at), bucket_floor(at + 1));
        Some((floor + (next - floor) / 2).min(self.max_ns))
    }

    /// The median, in nanoseconds.
    #[must_use]
    pub fn p50(&self) -> Option<u64> {
        self.quantile(0.5)
    }

    /// The 99th percentile, in nanoseconds.
    #[must_use]
    pub fn p99(&self) -> Option<u64> {
        self.quantile(0.99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for ns in values {
            histogram.count_one(ns);
        }
        histogram
    }

    #[test]
    fn long_values_are_counted_and_summed_up() {
        let values = histogram([1, 900, 1 << 20, 1 << 20, 1 << 30]);
        assert_eq!(values.at_least(1 << 20), (3, (2 << 20) + (1 << 30)));
        assert_eq!(values.at_least(1 << 31), (0, 0));
        assert_eq!(values.at_least(0).0, 5);
    }

    #[test]
    fn buckets_are_in_order_without_gaps() {
        for at in 0..BUCKETS {
            assert_eq!(bucket(bucket_floor(at)), at);
            if at + 1 < BUCKETS {
                assert_eq!(bucket(bucket_floor(at + 1) - 1), at);
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_value_is_known_within_a_sixteenth() {
        let mut ns = 1;
        while ns < 1 << 42 {
            let told = histogram([ns, ns, ns + ns / 3]).p50().unwrap_or(0);
            assert!(told.abs_diff(ns) * 16 <= ns, "{told} for {ns}");
            ns += 1 + ns / 7;
        }
    }

    #[test]
    fn quantiles_of_many_values_are_within_a_sixteenth() {
        let values = |count: u64| (1..=count).map(|i| i * i % 1_000_003 * 17);
        let mut sorted: Vec<u64> = values(10_000).collect();
        sorted.sort_unstable();
        let histogram = histogram(values(10_000));
        for (share, rank) in [(0.5, 5_000), (0.9, 9_000), (0.99, 9_900), (1.0, 10_000)] {
            let (told, really) = (histogram.quantile(share).unwrap_or(0), sorted[rank - 1]);
            assert!(told.abs_diff(really) * 16 <= really, "{share}: {told} for {really}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile_and_sums_add_up() {
        assert_eq!(Histogram::default().p50(), None);
        let mut sum = histogram([5, 7]);
        sum.add(&histogram([7, 1 << 50]));
        assert_eq!((sum.count(), sum.max_ns, sum.counts[7]), (4, 1 << 50, 2));
        assert_eq!(sum.quantile(1.0), Some(1 << 50));
    }
}
