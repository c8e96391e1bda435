//! From repetitions to rows: medians of the observations of each, quartiles of those, paired
//! ratios, and the distribution of all trials together.
//!
//! Each case has a leading figure and a second one ([`json`](super::json) names them).

use antiphon_report::stats::{
    Below, Quartiles, deviation, distribution, median, quantile, quartiles,
};

use super::cases::{Case, Cell};
use super::measure::Figures;
use super::{Measured, subjects};
use crate::bench::ratio::Ratio;
use crate::bench::rounds::{Rounds, Trouble, mean};

/// The results of one mechanism in one cell.
pub struct Row {
    /// Its name.
    pub subject: &'static str,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The conditions.
    pub cell: Cell,
    /// Repetitions that count.
    pub repetitions: usize,
    /// Trials in all of them.
    pub trials: usize,
    /// The number of events that were timed together.
    pub batch: usize,
    /// The leading figure and the second one.
    pub leads: [Option<Quartiles>; 2],
    /// Medians of the others.
    pub sender_ns: Option<f64>,
    /// How far the trials of a repetition, or the arrivals of a broadcast, are spread.
    pub sigma_ns: Option<f64>,
    /// CPU time of receivers and of the sender.
    pub cpu_ns_per_event: Option<f64>,
    /// How often a receiver has slept.
    pub sleeps_per_event: Option<f64>,
    /// How far the counters are apart, and how sure that is: of the surest repetition.
    pub clock: Option<(f64, f64)>,
    /// The distribution of the leading figure, over all trials.
    pub cdf: Vec<Below>,
    /// Ratios to the first peer: of the leading figure and of the second.
    pub ratios: [Option<Ratio>; 2],
    /// Ratios to the best of the common peers, and which that is.
    pub best: [Option<(Ratio, &'static str)>; 2],
    /// CPUs that others used meanwhile.
    pub others_cpus: Option<f64>,
    /// Why there are no figures, or fewer.
    pub trouble: Option<Trouble>,
}

/// Everything that is printed.
pub struct Report {
    /// The first peer, to which ratios are.
    pub reference: Option<&'static str>,
    /// Rows in the order of cells.
    pub rows: Vec<Row>,
    /// The time after which a repetition ends.
    pub seconds: f64,
    /// The seed of the order of subjects.
    pub seed: u64,
}

/// Makes rows of the measurements in `rounds`, of which a repetition takes `seconds`.
pub fn put_together(rounds: &Rounds, seconds: f64, measured: &[Measured]) -> Report {
    let reference = rounds.peers.first().copied();
    let row = |one: &Measured| {
        let cell: Vec<_> = measured.iter().filter(|other| other.cell == one.cell).collect();
        let ours = rounds.subjects.contains(&one.subject);
        Row { ours, ..row(one, &cell, reference) }
    };
    let rows = measured.iter().map(row).collect();
    Report { reference, rows, seconds, seed: rounds.seed }
}

fn row(one: &Measured, cell: &[&Measured], reference: Option<&'static str>) -> Row {
    let case = one.cell.case;
    let named = |name: &str| cell.iter().find(|other| other.subject == name).copied();
    let peer = reference.and_then(named);
    let medians = |of: &dyn Fn(&Figures) -> Option<f64>| {
        median(one.figures.iter().filter_map(of).collect::<Vec<_>>())
    };
    let all = || one.figures.iter().flat_map(|figures| leading(case, figures));
    let mut sorted: Vec<_> = all().copied().collect();
    sorted.sort_by(f64::total_cmp);
    Row {
        subject: one.subject,
        ours: false,
        cell: one.cell,
        repetitions: one.figures.len(),
        trials: sorted.len(),
        batch: one.figures.iter().map(|figures| figures.batch).max().unwrap_or(1),
        leads: [lead, second].map(|of| quartiles(values(one, of))),
        sender_ns: medians(&|figures| median(figures.sender_ns.clone())),
        sigma_ns: medians(&|figures| sigma(case, figures)),
        cpu_ns_per_event: medians(&|figures| figures.cpu_ns_per_event),
        sleeps_per_event: medians(&|figures| figures.sleeps_per_event),
        clock: one.figures.iter().filter_map(|figures| figures.clock).reduce(surer),
        cdf: distribution(&sorted),
        ratios: [lead, second].map(|of| peer.and_then(|peer| ratio(one, peer, of))),
        best: [lead, second].map(|of| {
            let best = best(cell, of)?;
            Some((ratio(one, best, of)?, best.subject))
        }),
        others_cpus: one.others_cpus(),
        trouble: one.trouble.clone(),
    }
}

/// A figure of a repetition, by its case.
type Figure = fn(Case, &Figures) -> Option<f64>;

/// The trials that a case is about.
fn leading(case: Case, figures: &Figures) -> &[f64] {
    if case == Case::SenderAlone { &figures.sender_ns } else { &figures.latency_ns }
}

fn lead(case: Case, figures: &Figures) -> Option<f64> {
    median(leading(case, figures).to_vec())
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

fn values(one: &Measured, of: Figure) -> Vec<f64> {
    one.figures.iter().filter_map(|figures| of(one.cell.case, figures)).collect()
}

fn ratio(one: &Measured, peer: &Measured, of: Figure) -> Option<Ratio> {
    Ratio::of(values(one, of).into_iter().zip(values(peer, of)))
}

/// The best of the common peers of a cell.
fn best<'a>(cell: &[&'a Measured], of: Figure) -> Option<&'a Measured> {
    let common = cell.iter().filter(|one| subjects::COMMON.contains(&one.subject));
    let judged = common.filter_map(|one| Some((median(values(one, of))?, *one)));
    judged.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, one)| one)
}

impl Report {
    /// The failures, in one line; subjects that this machine can't have are none, if there is
    /// anything else.
    pub fn trouble(&self) -> Option<String> {
        let nothing = self.rows.iter().all(|row| row.leads[0].is_none());
        let troubles = || self.rows.iter().filter_map(|row| Some((row, row.trouble.as_ref()?)));
        Trouble::failures(troubles().map(|(_, trouble)| trouble)).or_else(|| {
            let (row, trouble) = troubles().next().filter(|_| nothing)?;
            let (how, why) = trouble.json();
            Some(format!("nothing was measured: {} {how}: {why}", row.subject))
        })
    }

    /// CPUs that others used on average while the machine was meant to be idle.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.others_cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;

    fn measured(subject: &'static str, case: Case, medians: &[f64]) -> Measured {
        let figures = |&ns: &f64| Figures {
            latency_ns: vec![ns - 1.0, ns, ns + 1.0],
            sender_ns: vec![ns * 10.0],
            sigma_ns: vec![ns / 10.0],
            batch: 1,
            ..Figures::default()
        };
        Measured {
            cell: Cell { load: Load::Idle, case, gap_us: 0, waiters: 2, target: None },
            subject,
            figures: medians.iter().map(figures).collect(),
            others: Vec::new(),
            trouble: None,
        }
    }

    fn rows(case: Case) -> Vec<Row> {
        let all = [
            measured("condvar", case, &[30.0, 20.0, 40.0]),
            measured("futex", case, &[10.0, 10.0, 20.0]),
            measured("spin", case, &[1.0, 1.0, 1.0]),
            measured("parking_lot", case, &[5.0, 5.0, 8.0]),
        ];
        let cell: Vec<_> = all.iter().collect();
        all.iter().map(|one| row(one, &cell, Some("futex"))).collect()
    }

    #[test]
    fn a_row_has_medians_of_repetitions_and_the_distribution_of_all_trials() {
        let row = &rows(Case::Parked)[0];
        assert_eq!(row.leads[0].map(|lead| (lead.p25, lead.median)), Some((25.0, 30.0)));
        assert_eq!((row.trials, row.repetitions, row.sender_ns), (9, 3, Some(300.0)));
        assert!(row.leads[1].is_some_and(|p99| p99.median > 30.9 && p99.median < 31.0));
        let cdf = |name: &str| row.cdf.iter().find(|one| one.name == name).map(|one| one.value);
        assert_eq!(cdf("p50"), Some(30.0));
        assert!(cdf("p10") < cdf("p90") && cdf("p90") < cdf("p999"));
    }

    #[test]
    fn ratios_are_paired_and_the_best_is_a_common_peer() {
        let row = &rows(Case::Parked)[0];
        assert_eq!(row.ratios[0].map(|ratio| ratio.of.median), Some(2.0));
        let best = row.best[0].map(|(ratio, name)| (ratio.of.median, name));
        assert_eq!(best, Some((5.0, "parking_lot")));
    }

    #[test]
    fn each_case_leads_with_what_it_is_about() {
        let lead = |case| rows(case)[1].leads.map(|lead| lead.map(|lead| lead.median));
        assert_eq!(lead(Case::Broadcast), [Some(10.0), Some(1.0)]);
        assert_eq!(lead(Case::SenderAlone), [Some(100.0), Some(100.0)]);
    }
}
