//! How late timers were, in microseconds.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use antiphon_report::stats::{median, quantile};

const ON_TIME_NS: u64 = 1_000_000;

/// How late timers were.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Tardiness {
    /// Half of the timers were less late than this.
    pub p50_us: f64,
    /// 90 of 100 timers were less late than this.
    pub p90_us: f64,
    /// 99 of 100.
    pub p99_us: f64,
    /// 999 of 1000.
    pub p999_us: f64,
    /// None more.
    pub max_us: f64,
    /// The share of those that were at most a millisecond late.
    pub within_1ms: f64,
    /// How many there were.
    pub timers: u64,
}

impl Tardiness {
    /// The tardiness of timers in any order.
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
    /// The medians of repetitions; but the most of all, and how many timers there were in all.
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

    /// The object in reports; without timers its figures are null.
    pub fn json(&self) -> Value {
        let of = |figure: f64| (self.timers > 0).then_some(figure);
        json!({
            "p50": of(self.p50_us), "p90": of(self.p90_us), "p99": of(self.p99_us),
            "p999": of(self.p999_us), "max": of(self.max_us),
            "within_1ms": of(self.within_1ms), "timers": self.timers,
        })
    }
}

/// The delays in microseconds, the least first.
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
