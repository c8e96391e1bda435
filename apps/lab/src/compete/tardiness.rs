//! Tardiness of timers, in microseconds.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use antiphon_report::stats::{median, quantile};

const ON_TIME_NS: u64 = 1_000_000;

/// Distribution of the tardiness of timers.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Tardiness {
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
    /// Share of timers that were at most a millisecond late.
    pub within_1ms: f64,
    /// Number of timers.
    pub timers: u64,
}

impl Tardiness {
    /// Computes the distribution from the tardiness of timers in any order.
    pub fn of(all_ns: &[u64]) -> Self {
        let sorted = sorted_us(all_ns);
        let at = |share| quantile(&sorted, share).unwrap_or(0.0);
        let on_time = all_ns.iter().filter(|&&ns| ns <= ON_TIME_NS).count();
        Self {
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
            within_1ms: on_time as f64 / all_ns.len().max(1) as f64,
            timers: all_ns.len() as u64,
        }
    }
}

impl Tardiness {
    /// Returns the medians over repetitions; but for `max_us` the maximum, and for `timers` the
    /// sum.
    pub fn medians(all: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> f64| median(all.iter().map(figure).collect());
        let of = |figure| of(figure).unwrap_or(0.0);
        Self {
            p50_us: of(|one| one.p50_us),
            p90_us: of(|one| one.p90_us),
            p99_us: of(|one| one.p99_us),
            p999_us: of(|one| one.p999_us),
            max_us: all.iter().map(|one| one.max_us).fold(0.0, f64::max),
            within_1ms: of(|one| one.within_1ms),
            timers: all.iter().map(|one| one.timers).sum(),
        }
    }

    /// Returns the object in reports; without timers its figures are null.
    pub fn json(&self) -> Value {
        let of = |figure: f64| (self.timers > 0).then_some(figure);
        json!({
            "p50": of(self.p50_us), "p90": of(self.p90_us), "p99": of(self.p99_us),
            "p999": of(self.p999_us), "max": of(self.max_us),
            "within_1ms": of(self.within_1ms), "timers": self.timers,
        })
    }
}

/// Converts the delays to microseconds, sorted in ascending order.
pub fn sorted_us(all_ns: &[u64]) -> Vec<f64> {
    let mut all: Vec<_> = all_ns.iter().map(|&ns| ns as f64 / 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_repetitions_the_most_is_the_most_of_all() {
        let of = |late_us: f64| Tardiness {
            p99_us: late_us,
            max_us: late_us,
            timers: 2,
            ..Tardiness::default()
        };
        let all = Tardiness::medians(&[of(1.0), of(9.0), of(3.0)]);
        assert_eq!((all.p99_us, all.max_us, all.timers), (3.0, 9.0, 6));
    }
}
