//! A log-linear histogram with 32 buckets per octave, so a value is known within 3 %.
//!
//! Two kinds of quantile come out of it. The ordinary one weighs each value once. The
//! *length-biased* one weighs a wait by its length: it is what an observer sees that looks at a
//! random waiting thread at a random instant. A lock that lets one thread monopolise it and starves
//! the others looks excellent by the first and terrible by the second.

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) * SUB;

/// Values (of any unit), counted by size.
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: Box::new([0; BUCKETS]), max: 0 }
    }

    /// Records that `value` was seen `weight` times.
    pub fn record(&mut self, value: u64, weight: u64) {
        self.counts[bucket(value)] += weight;
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.max = self.max.max(other.max);
    }

    /// The largest value, exactly; 0 if there is none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value that a share `q` of all values does not exceed; 0 if there is none.
    #[must_use]
    pub fn quantile(&self, q: f64) -> f64 {
        self.weighted_quantile(q, |_| 1.0)
    }

    /// The value `v` for which the values up to `v` make up a share `q` of the *sum* of all values;
    /// 0 if there are no values.
    #[must_use]
    pub fn length_biased_quantile(&self, q: f64) -> f64 {
        self.weighted_quantile(q, |value| value)
    }

    fn weighted_quantile(&self, q: f64, weight: impl Fn(f64) -> f64) -> f64 {
        let weights = || {
            let used = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
            used.map(|(index, &count)| {
                let value = middle(index).min(self.max as f64);
                (value, count as f64 * weight(value))
            })
        };
        let wanted = q * weights().map(|(_, weight)| weight).sum::<f64>();
        let mut passed = 0.0;
        for (value, weight) in weights() {
            passed += weight;
            if passed >= wanted {
                return value;
            }
        }
        self.max as f64
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - SUB_BITS;
    (shift as usize + 1) * SUB + (value >> shift) as usize - SUB
}

/// The middle of the values that share bucket `index`.
fn middle(index: usize) -> f64 {
    if index < SUB {
        return index as f64;
    }
    let width = 2_f64.powi((index / SUB - 1) as i32);
    (SUB + index % SUB) as f64 * width + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= right * 0.032
    }

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for value in (0..100_000).chain((17..64).map(|bit| 1 << bit)).chain([u64::MAX]) {
            let index = bucket(value);
            assert!(index >= last && index < BUCKETS, "{value}");
            assert!(close(middle(index), value as f64), "{value} {}", middle(index));
            last = index;
        }
    }

    #[test]
    fn a_quantile_weighs_each_value_once() {
        let mut seen = Histogram::new();
        (1..=1000).for_each(|value| seen.record(value, 1));
        assert!(close(seen.quantile(0.5), 500.0));
        assert!(close(seen.quantile(0.99), 990.0));
        assert_eq!(seen.max(), 1000);
        assert_eq!(Histogram::new().quantile(0.5), 0.0);
    }

    #[test]
    fn a_length_biased_quantile_weighs_a_wait_by_its_length() {
        let mut seen = Histogram::new();
        // 900 waits of 1 and 1 of 1000: at a random instant, the long one is more likely to be
        // seen.
        seen.record(1, 900);
        seen.record(1000, 1);
        assert_eq!(seen.quantile(0.99), 1.0);
        assert_eq!(seen.length_biased_quantile(0.4), 1.0);
        assert!(close(seen.length_biased_quantile(0.5), 1000.0));
        // Uniform on 1..=n: the length-biased median is n / √2.
        let mut uniform = Histogram::new();
        (1..=1000).for_each(|value| uniform.record(value, 1));
        assert!(close(uniform.length_biased_quantile(0.5), 1000.0 / 2_f64.sqrt()));
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut left, mut right) = (Histogram::new(), Histogram::new());
        left.record(10, 3);
        right.record(31, 4);
        left.merge(&right);
        assert_eq!((left.quantile(0.4), left.quantile(0.5), left.max()), (10.0, 31.0, 31));
    }
}
