//! The median of paired ratios with its confidence interval by the sign test, which assumes nothing
//! about the distribution of the ratios.

use super::order::median;

/// The confidence interval of the median of the ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end of the 95 % interval.
    pub low95: f64,
    /// The median of the ratios.
    pub median: f64,
    /// The upper end.
    pub high95: f64,
}

impl Interval {
    /// The interval of these ratios. `None` if there are fewer than six.
    pub fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let from_below = rank(ratios.len())?;
        Some(Self {
            low95: ratios[from_below - 1],
            high95: ratios[ratios.len() - from_below],
            median: median(ratios)?,
        })
    }

    /// The verdict of the interval: one word or two.
    pub fn verdict(self) -> &'static str {
        match self {
            Self { high95, .. } if high95 < 1.0 => "faster",
            Self { low95, .. } if low95 > 1.0 => "slower",
            _ => "no difference",
        }
    }
}

/// The largest k with 2·P(B(n, ½) < k) ≤ 5 %. `None` if that is 0.
fn rank(n: usize) -> Option<usize> {
    // The probability of B = k, as a logarithm: with a thousand pairs, the value itself could
    // underflow.
    let mut log = n as f64 * 0.5_f64.ln();
    let mut below = 0.0;
    let mut k = 0;
    while k < n && 2.0 * (below + log.exp()) <= 0.05 {
        below += log.exp();
        log += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
    (k > 0).then_some(k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_sign_test() {
        // From tables of the binomial distribution.
        let known = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (12, Some(3)),
            (15, Some(4)),
            (20, Some(6)),
            (100, Some(40)),
            (10_000, Some(4902)),
        ];
        for (n, k) in known {
            assert_eq!(rank(n), k, "{n} pairs");
        }
    }

    #[test]
    fn the_verdict_needs_an_interval_on_one_side_of_one() {
        let of = |ratios: &[f64]| Interval::of(ratios.to_vec()).map(Interval::verdict);
        assert_eq!(of(&[0.9, 0.8, 0.95, 0.9, 0.91, 0.99]), Some("faster"));
        assert_eq!(of(&[1.1; 6]), Some("slower"));
        assert_eq!(of(&[0.9, 0.8, 0.95, 0.9, 0.91, 1.01]), Some("no difference"));
        assert_eq!(of(&[0.9; 5]), None);
    }
}
