//! Statistics of a set of samples, in integers: there is no floating point in a handler, and a
//! figure that is compared with one of another run should be the same to the last digit.

/// The figures of a set of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The least.
    pub min: u64,
    /// The one in the middle.
    pub median: u64,
    /// The one that 99 of 100 do not exceed.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

impl Summary {
    /// The figures of `samples`, which are sorted by this; `None` if there are none.
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

/// The standard deviation of samples around their mean, rounded down; 0 if there are none.
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
