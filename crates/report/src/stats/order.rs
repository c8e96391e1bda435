//! Order statistics of a few repetitions.

/// The median and the quartiles around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quartiles {
    /// A quarter of the values are below.
    pub p25: f64,
    /// Half of the values are below.
    pub median: f64,
    /// Three quarters of the values are below.
    pub p75: f64,
}

/// The value that a `share` (0 to 1) of `sorted` is below, interpolated between neighbours. `None`
/// if there are no values.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * place.fract())
}

/// The quartiles of `values`. `None` if there are no values.
#[must_use]
pub fn quartiles(mut values: Vec<f64>) -> Option<Quartiles> {
    values.sort_by(f64::total_cmp);
    let at = |share| quantile(&values, share);
    Some(Quartiles { p25: at(0.25)?, median: at(0.5)?, p75: at(0.75)? })
}

/// The standard deviation of `values`: the square root of their variance. `None` if there are no
/// values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (!values.is_empty()).then(|| (squares / count).sqrt())
}

/// The median of `values`. `None` if there are no values.
#[must_use]
pub fn median(values: Vec<f64>) -> Option<f64> {
    quartiles(values).map(|quartiles| quartiles.median)
}

/// The geometric mean of ratios. `None` if there are none, or one is not positive.
#[must_use]
pub fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let usable = !ratios.is_empty() && ratios.iter().all(|&ratio| ratio > 0.0);
    usable.then(|| (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate() {
        let of = |values: &[f64]| quartiles(values.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[5.0]), Some(Quartiles { p25: 5.0, median: 5.0, p75: 5.0 }));
        assert_eq!(
            of(&[4.0, 1.0, 2.0, 3.0, 5.0]).map(|q| (q.p25, q.median, q.p75)),
            Some((2.0, 3.0, 4.0))
        );
        assert_eq!(median(vec![1.0, 2.0]), Some(1.5));
    }

    #[test]
    fn a_quantile_is_between_the_least_and_the_most() {
        let sorted: Vec<_> = (0..=100).map(f64::from).collect();
        for share in [0.0, 0.1, 0.99, 1.0] {
            assert_eq!(quantile(&sorted, share), Some(share * 100.0));
        }
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn a_deviation_is_that_of_all_values_and_not_of_a_sample() {
        assert_eq!(deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some(2.0));
        assert_eq!(deviation(&[3.0]), Some(0.0));
        assert_eq!(deviation(&[]), None);
    }

    #[test]
    fn a_geometric_mean_is_that_of_ratios() {
        let mean = geometric_mean(&[0.5, 2.0, 1.0]);
        assert!(mean.is_some_and(|mean| (mean - 1.0).abs() < 1e-12));
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }
}
