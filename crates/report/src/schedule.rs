//! The parameters of the scheduler: `period=20,slack=1`, in milliseconds; and which of them a tier
//! uses, because reports show only those.

use std::str::FromStr;

use antiphon_coop::{Options, Tier};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How the programs that cooperate share a CPU.
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

/// Largest value of an option, in milliseconds.
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
                format!("'{part}' is not a time above 0 and up to 1000 ms; write period=20,slack=1")
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

/// Which of the options have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Used {
    /// None.
    Nothing,
    /// Slack and threshold: a boosted loop runs no longer than its slack, and owes no more than the
    /// threshold.
    Boost,
    /// All.
    All,
}

impl Used {
    /// The options that a tier uses.
    pub fn by(tier: Tier) -> Self {
        match tier {
            Tier::Kernel | Tier::Baton => Self::All,
            Tier::Boost => Self::Boost,
            Tier::RealTimeSplit | Tier::Split | Tier::None => Self::Nothing,
        }
    }
}

impl Schedule {
    /// The options that have an effect, for scripts; null if none has.
    pub fn json(self, used: Used) -> Value {
        let Options { period_ns, min_slice_ns, slack_ns, threshold_ns } = self.0;
        match used {
            Used::Nothing => Value::Null,
            Used::Boost => json!({ "slack_ns": slack_ns, "threshold_ns": threshold_ns }),
            Used::All => json!({
                "period_ns": period_ns, "min_slice_ns": min_slice_ns, "slack_ns": slack_ns,
                "threshold_ns": threshold_ns,
            }),
        }
    }

    /// The options that have an effect, for people; `None` if none has.
    pub fn said(self, used: Used) -> Option<String> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let Options { slack_ns, threshold_ns, .. } = self.0;
        match used {
            Used::Nothing => None,
            Used::Boost => {
                Some(format!("slack {} ms, threshold {} ms", ms(slack_ns), ms(threshold_ns)))
            }
            Used::All => Some(self.0.to_string()),
        }
    }
}

/// The text about the options below a table: one line for all names that use the same options.
pub fn legend<'a>(all: impl IntoIterator<Item = (&'a str, Used)>, schedule: Schedule) -> String {
    let (mut boost, mut every) = (Vec::new(), Vec::new());
    for (name, used) in all {
        let names = match used {
            Used::Nothing => continue,
            Used::Boost => &mut boost,
            Used::All => &mut every,
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let line = |names: Vec<&str>, used| {
        let said = schedule.said(used).filter(|_| !names.is_empty());
        said.map_or_else(String::new, |said| format!("Options of {}: {said}.\n", names.join(", ")))
    };
    line(boost, Used::Boost) + &line(every, Used::All)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_effect_is_not_said() {
        let usual = Schedule::default();
        assert_eq!(usual.json(Used::by(Tier::Split)), Value::Null);
        assert_eq!(usual.json(Used::by(Tier::Boost)).as_object().map(|keys| keys.len()), Some(2));
        assert_eq!(usual.json(Used::by(Tier::Baton))["period_ns"], 20_000_000);
        let all = [("t1", Used::Boost), ("t2", Used::Nothing), ("t3", Used::All)];
        let said = legend(all.into_iter().chain(all), usual);
        assert_eq!(
            said,
            "Options of t1: slack 1 ms, threshold 20 ms.\nOptions of t3: period 20 ms, minimum \
             slice 0.1 ms, slack 1 ms, threshold 20 ms.\n"
        );
    }

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
