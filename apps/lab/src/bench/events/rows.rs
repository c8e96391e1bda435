//! The values of a row of a mechanism: medians of the observations of each repetition, quartiles of
//! those, paired ratios, and the distribution of all trials together.
//!
//! | case | leading figure | second figure |
//! |---|---|---|
//! | `running`, `parked`, `parked-idle-1ms`, `busy-target` | `p50_ns` | `p99_ns` |
//! | `sender-alone` | `sender_ns` | `sender_p99_ns` |
//! | `broadcast-N` | `last_ns` | `sigma_ns` |
//! | `noise`, `clock` | `p50_ns` | `p99_ns` |
//!
//! `ratio` is the ratio of the leading figure, `ratio_second` that of the second figure;
//! `ratio_best` and `ratio_best_second` are the same ratios to the best of the
//! [common](subjects::COMMON) peers.

use antiphon_report::stats::{Below, deviation, distribution, median, quantile};
use serde::{Serialize, Serializer};

use super::cases::{Case, Cell};
use super::measure::Figures;
use super::subjects;
use crate::bench::ratio::{Better, Ratio};
use crate::bench::report::{self, Beside, Lead};

/// The results of one mechanism in one cell.
pub type Row = report::Row<Cell, Summary>;

/// The values of a row.
#[derive(Serialize)]
pub struct Summary {
    /// Number of trials in all repetitions.
    pub trials: usize,
    /// Number of events that were timed together.
    pub batch: usize,
    /// The leading figure.
    #[serde(flatten)]
    pub lead: Lead,
    /// The second figure.
    #[serde(flatten)]
    pub second: Median,
    /// Cost of a notification for the sender, if it is not the leading figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_ns: Option<Option<f64>>,
    /// Standard deviation of the trials of a repetition, or of the arrivals of a broadcast.
    pub sigma_ns: Option<f64>,
    /// CPU time per event of receivers and sender.
    pub cpu_ns_per_event: Option<f64>,
    /// Sleeps of a receiver per event.
    pub sleeps_per_event: Option<f64>,
    /// Offset between the counters, from the repetition with the least uncertainty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<f64>,
    /// Uncertainty of `offset_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt_ns: Option<f64>,
    /// The distribution of the leading figure, over all trials.
    #[serde(rename = "cdf_ns", serialize_with = "as_object")]
    pub cdf: Vec<Below>,
    /// The ratio of the leading figure.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The ratio of the second figure.
    #[serde(flatten)]
    pub ratio_second: Ratio,
    /// The ratio of the leading figure to the best of the common peers.
    #[serde(flatten)]
    pub ratio_best: Ratio,
    /// The ratio of the second figure to the best of the common peers.
    #[serde(flatten)]
    pub ratio_best_second: Ratio,
    /// Name of the peer that each best ratio is to.
    pub best: Option<&'static str>,
    pub best_second: Option<&'static str>,
}

/// A median under its key.
pub struct Median {
    /// The key.
    pub key: &'static str,
    /// The median of repetitions.
    pub of: Option<f64>,
}

impl Serialize for Median {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([(self.key, self.of)])
    }
}

fn as_object<S: Serializer>(cdf: &[Below], to: S) -> Result<S::Ok, S::Error> {
    Below::object(cdf).serialize(to)
}

impl Summary {
    /// Summarises the repetitions of a mechanism.
    pub fn of(one: &Beside<'_, Cell, Figures>) -> Self {
        let (case, figures) = (one.cell().case, one.figures());
        let lead = |figures: &Figures| median(leading(case, figures).to_vec());
        let second = |figures: &Figures| second(case, figures);
        let mut sorted: Vec<_> =
            figures.iter().flat_map(|figures| leading(case, figures)).copied().collect();
        sorted.sort_by(f64::total_cmp);
        let clock = figures.iter().filter_map(|figures| figures.clock).reduce(surer);
        let best = one.best(&subjects::COMMON, Better::Less, lead);
        let best_second = one.best(&subjects::COMMON, Better::Less, second);
        let ratio_best = one.ratio_to(best, "ratio_best", lead);
        let ratio_best_second = one.ratio_to(best_second, "ratio_best_second", second);
        let (key, key_of_second) = keys(case);
        let sender_ns = || one.median(|figures| median(figures.sender_ns.clone()));
        Self {
            trials: sorted.len(),
            batch: figures.iter().map(|figures| figures.batch).max().unwrap_or(1),
            lead: one.lead(key, lead),
            second: Median { key: key_of_second, of: one.median(second) },
            sender_ns: (case != Case::SenderAlone).then(sender_ns),
            sigma_ns: one.median(|figures| sigma(case, figures)),
            cpu_ns_per_event: one.median(|figures| figures.cpu_ns_per_event),
            sleeps_per_event: one.median(|figures| figures.sleeps_per_event),
            offset_ns: clock.map(|(offset, _)| offset),
            doubt_ns: clock.map(|(_, doubt)| doubt),
            cdf: distribution(&sorted),
            ratio: one.ratio("ratio", lead),
            ratio_second: one.ratio("ratio_second", second),
            best: best.filter(|_| ratio_best.of.is_some()).map(|best| best.subject),
            best_second: best_second
                .filter(|_| ratio_best_second.of.is_some())
                .map(|best| best.subject),
            ratio_best,
            ratio_best_second,
        }
    }
}

/// Returns the keys of the leading figure and the second figure.
fn keys(case: Case) -> (&'static str, &'static str) {
    match case {
        Case::SenderAlone => ("sender_ns", "sender_p99_ns"),
        Case::Broadcast => ("last_ns", "sigma_ns"),
        _ => ("p50_ns", "p99_ns"),
    }
}

/// Returns the observations of the leading figure.
fn leading(case: Case, figures: &Figures) -> &[f64] {
    if case == Case::SenderAlone { &figures.sender_ns } else { &figures.latency_ns }
}

fn second(case: Case, figures: &Figures) -> Option<f64> {
    if case == Case::Broadcast {
        return sigma(case, figures);
    }
    let mut sorted = leading(case, figures).to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.99)
}

fn sigma(case: Case, figures: &Figures) -> Option<f64> {
    if case == Case::Broadcast {
        median(figures.sigma_ns.clone())
    } else {
        deviation(leading(case, figures))
    }
}

fn surer(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    if other.1 < one.1 { other } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds};

    fn measured(subject: &'static str, case: Case, medians: &[f64]) -> Measured<Cell, Figures> {
        let figures = |&ns: &f64| Figures {
            latency_ns: vec![ns - 1.0, ns, ns + 1.0],
            sender_ns: vec![ns * 10.0],
            sigma_ns: vec![ns / 10.0],
            batch: 1,
            ..Figures::default()
        };
        let cell = Cell { load: Load::Idle, case, gap_us: 0, waiters: 2, target: None };
        Measured::of(cell, subject, medians.iter().map(figures).collect())
    }

    fn rows(case: Case) -> Vec<Row> {
        let all = [
            measured("condvar", case, &[30.0, 20.0, 40.0]),
            measured("futex", case, &[10.0, 10.0, 20.0]),
            measured("spin", case, &[1.0, 1.0, 1.0]),
            measured("parking_lot", case, &[5.0, 5.0, 8.0]),
        ];
        let rounds = Rounds { peers: vec!["futex"], ..Rounds::default() };
        Beside::all(&rounds, &all).map(|one| one.row(Summary::of(&one))).collect()
    }

    #[test]
    fn a_row_has_medians_of_repetitions_and_the_distribution_of_all_trials() {
        let row = &rows(Case::Parked)[0];
        let Summary { lead, second, trials, sender_ns, cdf, .. } = &row.summary;
        assert_eq!(lead.of.map(|lead| (lead.p25, lead.median)), Some((25.0, 30.0)));
        assert_eq!((*trials, row.repetitions, *sender_ns), (9, 3, Some(Some(300.0))));
        assert!(second.of.is_some_and(|p99| p99 > 30.9 && p99 < 31.0));
        let cdf = |name: &str| cdf.iter().find(|one| one.name == name).map(|one| one.value);
        assert_eq!(cdf("p50"), Some(30.0));
        assert!(cdf("p10") < cdf("p90") && cdf("p90") < cdf("p999"));
    }

    #[test]
    fn ratios_are_paired_and_the_best_is_a_common_peer() {
        let summary = &rows(Case::Parked)[0].summary;
        assert_eq!(summary.ratio.median(), Some(2.0));
        assert_eq!((summary.ratio_best.median(), summary.best), (Some(5.0), Some("parking_lot")));
    }

    #[test]
    fn each_case_leads_with_what_it_is_about() {
        let lead = |case| {
            let Summary { lead, second, .. } = &rows(case)[1].summary;
            [lead.median(), second.of]
        };
        assert_eq!(lead(Case::Broadcast), [Some(10.0), Some(1.0)]);
        assert_eq!(lead(Case::SenderAlone), [Some(100.0), Some(100.0)]);
    }
}
