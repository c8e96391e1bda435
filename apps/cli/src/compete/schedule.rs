//! The parameters of the scheduler: `period=20,slack=1`, in milliseconds.

use std::str::FromStr;

use antiphon::coop::Options;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How a CPU is shared by who cooperates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
pub struct Schedule(pub Options);

impl From<[u64; 4]> for Schedule {
    fn from([period_ns, min_slice_ns, slack_ns, threshold_ns]: [u64; 4]) -> Self {
        Self(Options { period_ns, min_slice_ns, slack_ns, threshold_ns })
    }
}

impl From<Schedule> for [u64; 4] {
    fn from(Schedule(of): Schedule) -> Self {
        [of.period_ns, of.min_slice_ns, of.slack_ns, of.threshold_ns]
    }
}

/// The most that any of them may be, in milliseconds.
const MOST_MS: f64 = 1000.0;
const NAMES: &str = "period, min-slice, slack, threshold";

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut options = Options::default();
        for part in text.split(',') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let ms = value.trim().parse().ok().filter(|ms| *ms > 0.0 && *ms <= MOST_MS);
            let ms: f64 = ms.ok_or_else(|| {
                format!("'{part}' is no time above 0 and up to 1000 ms; write period=20,slack=1")
            })?;
            *match name.trim() {
                "period" => &mut options.period_ns,
                "min-slice" => &mut options.min_slice_ns,
                "slack" => &mut options.slack_ns,
                "threshold" => &mut options.threshold_ns,
                other => return Err(format!("no option '{other}'; there are: {NAMES}")),
            } = ((ms * 1e6) as u64).max(1);
        }
        Ok(Self(options))
    }
}

impl Schedule {
    /// As reports have it.
    pub fn json(self) -> Value {
        let Options { period_ns, min_slice_ns, slack_ns, threshold_ns } = self.0;
        json!({
            "period_ns": period_ns, "min_slice_ns": min_slice_ns, "slack_ns": slack_ns,
            "threshold_ns": threshold_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_usual() {
        let usual = Options::default();
        let wanted = Options { period_ns: 10_000_000, slack_ns: 500_000, ..usual };
        assert_eq!("slack=0.5, period=10".parse(), Ok(Schedule(wanted)));
        for wrong in ["", "period", "period=", "period=0", "period=x", "period=2000", "late=1"] {
            let refused = wrong.parse::<Schedule>();
            assert!(refused.is_err_and(|why| why.contains("period")), "{wrong}");
        }
        let words: [u64; 4] = Schedule(wanted).into();
        assert_eq!(Schedule::from(words), Schedule(wanted));
    }
}
