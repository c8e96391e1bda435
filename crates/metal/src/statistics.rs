//! Statistics of a set of samples, in integers: handlers have no floating point, and figures of two
//! runs must be comparable to the last digit.

/// The figures of a set of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The smallest sample.
    pub min: u64,
    /// The median.
    pub median: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The largest sample.
    pub max: u64,
}

impl Summary {
    /// Returns the figures of `samples`, which it sorts; `None` if there are none.
    pub fn of(samples: &mut [u64]) -> Option<Self> {
        samples.sort_unstable();
        let last = samples.len().checked_sub(1)?;
        Some(Self {
            min: samples[0],
            median: samples[last / 2],
            p99: samples[last - last / 100],
            max: samples[last],
        })
    }
}

/// Returns the standard deviation of the samples, rounded down; 0 if there are none.
#[must_use]
pub fn deviation(samples: &[u64]) -> u64 {
    let count = samples.len() as u128;
    if count == 0 {
        return 0;
    }
    let (mut sum, mut squares) = (0_u128, 0_u128);
    for &sample in samples {
        sum += u128::from(sample);
        squares += u128::from(sample) * u128::from(sample);
    }
    // The variance is the mean of the squares less the square of the mean.
    let variance = (squares * count - sum * sum) / (count * count);
    variance.isqrt() as u64
}
