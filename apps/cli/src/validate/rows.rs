//! Measured beside predicted: rows, and their means.

use serde_json::{Value, json};

use super::workload::Case;
use crate::stats::geometric_mean;

/// One figure of both worlds.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: Case,
    /// Threads.
    pub threads: usize,
    /// The lock.
    pub subject: &'static str,
    /// Which figure, with its unit.
    pub metric: &'static str,
    /// Measured here: the median, and the quartiles of all repetitions' windows.
    pub measured: Option<[f64; 3]>,
    /// Of the simulation.
    pub predicted: f64,
}

impl Row {
    /// Predicted over measured.
    pub fn ratio(&self) -> Option<f64> {
        let [measured, ..] = self.measured?;
        (measured > 0.0 && self.predicted > 0.0).then(|| self.predicted / measured)
    }

    /// For scripts.
    pub fn object(&self) -> Value {
        let [measured, p25, p75] = match self.measured {
            Some(quartiles) => quartiles.map(Some),
            None => [None; 3],
        };
        json!({
            "case": self.case.name, "threads": self.threads, "subject": self.subject,
            "metric": self.metric, "measured": measured, "p25": p25, "p75": p75,
            "predicted": self.predicted, "error": self.ratio().map(|ratio| ratio - 1.0),
        })
    }
}

/// The rows of one case, number of threads and metric, as one number.
#[derive(Clone, Debug, PartialEq)]
pub struct Mean {
    /// The case's name.
    pub case: &'static str,
    /// Threads.
    pub threads: usize,
    /// The metric.
    pub metric: &'static str,
    /// Geometric mean of predicted over measured.
    pub ratio: Option<f64>,
    /// The smallest and the largest ratio.
    pub range: Option<(f64, f64)>,
    /// Rows that were measured and predicted.
    pub rows: usize,
    /// How far from 1 the mean may be, if that is promised.
    pub band: Option<f64>,
}

/// How far the mean of a case may be from 1: one thread, two, and no promise for more.
fn band(threads: usize, metric: &str) -> Option<f64> {
    match (threads, metric) {
        (1, THROUGHPUT) => Some(0.05),
        (2, THROUGHPUT) => Some(0.15),
        _ => None,
    }
}

/// The metric that all runs have.
pub const THROUGHPUT: &str = "ops_per_s";

impl Mean {
    /// Whether the mean is within its band.
    pub fn holds(&self) -> Option<bool> {
        Some((self.ratio? - 1.0).abs() <= self.band?)
    }

    /// For scripts.
    pub fn object(&self) -> Value {
        json!({
            "case": self.case, "threads": self.threads, "metric": self.metric,
            "ratio": self.ratio, "least": self.range.map(|range| range.0),
            "most": self.range.map(|range| range.1), "rows": self.rows, "band": self.band,
            "holds": self.holds(),
        })
    }
}

/// The means of `rows`, in the order in which their cases begin.
pub fn means(rows: &[Row]) -> Vec<Mean> {
    let key = |row: &Row| (row.case.name, row.threads, row.metric);
    let mut keys: Vec<_> = Vec::new();
    for row in rows {
        if !keys.contains(&key(row)) {
            keys.push(key(row));
        }
    }
    let mean = |(case, threads, metric)| {
        let of = rows.iter().filter(|row| key(row) == (case, threads, metric));
        let ratios: Vec<_> = of.filter_map(Row::ratio).collect();
        let least = ratios.iter().copied().reduce(f64::min);
        let range = least.zip(ratios.iter().copied().reduce(f64::max));
        let (ratio, rows) = (geometric_mean(&ratios), ratios.len());
        Mean { case, threads, metric, ratio, range, rows, band: band(threads, metric) }
    };
    keys.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::workload::{EMPTY, SHORT};
    use super::*;

    fn row(case: Case, threads: usize, measured: Option<f64>, predicted: f64) -> Row {
        let measured = measured.map(|value| [value; 3]);
        Row { case, threads, subject: "tas", metric: THROUGHPUT, measured, predicted }
    }

    #[test]
    fn a_mean_is_of_its_case_and_says_whether_it_holds() {
        let rows = [
            row(EMPTY, 2, Some(10.0), 5.0),
            row(EMPTY, 2, Some(10.0), 20.0),
            row(SHORT, 2, Some(10.0), 8.0),
            row(SHORT, 1, Some(10.0), 9.0),
            row(SHORT, 2, None, 8.0),
        ];
        let means = means(&rows);
        assert_eq!(means.len(), 3);
        assert!(means[0].ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-12));
        assert_eq!((means[0].range, means[0].rows), (Some((0.5, 2.0)), 2));
        let held: Vec<_> = means.iter().map(Mean::holds).collect();
        assert_eq!(held, [Some(true), Some(false), Some(false)]);
        assert_eq!((means[1].case, means[1].rows), (SHORT.name, 1), "one was not measured");
    }

    #[test]
    fn an_error_is_the_share_by_which_the_prediction_is_off() {
        let object = row(EMPTY, 2, Some(10.0), 8.0).object();
        assert!(object["error"].as_f64().is_some_and(|error| (error + 0.2).abs() < 1e-12));
        assert!(row(EMPTY, 2, None, 8.0).object()["error"].is_null());
    }
}
