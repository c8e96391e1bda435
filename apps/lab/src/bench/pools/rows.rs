//! From repetitions to rows: a row for each subject in each cell, and in each step of a ramp.

use antiphon_report::stats::{Quartiles, median, quartiles};
use serde_json::{Map, Value};

use super::figures::{Counted, Figures, Latencies};
use crate::bench::ratio::Ratio;
use crate::bench::rounds::{Cell, Measured as Of, Rounds, Trouble, mean};

/// Under what conditions tasks are run.
pub trait Conditions: Cell {
    /// How many threads run tasks.
    fn workers(&self) -> usize;

    /// The steps of a ramp, in parts of the capacity; empty where there is none.
    fn steps(&self) -> &'static [f64] {
        &[]
    }

    /// Puts what scripts are to know into a row.
    fn put(&self, object: &mut Map<String, Value>);
}

/// The measurements of one subject in one cell.
pub type Measured<C> = Of<C, Figures>;

/// The results of one subject in one cell, or in a step of that.
pub struct Row<C> {
    /// Its name.
    pub subject: &'static str,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The conditions.
    pub cell: C,
    /// The step of the ramp, in parts of the capacity.
    pub part: Option<f64>,
    /// Repetitions that count.
    pub repetitions: usize,
    /// Tasks a second; of a step of the ramp, packets a second that were done in time.
    pub rate: Option<Quartiles>,
    /// CPU time a task.
    pub cpu_us: Option<Quartiles>,
    /// Medians of the observations of each repetition.
    pub latency: Latencies,
    /// The counts of pools of ours.
    pub counted: [Option<f64>; 3],
    /// Ratios to the first peer: tasks a second, p50, p99, CPU time a task.
    pub ratios: [Option<Ratio>; 4],
    /// CPUs that others used meanwhile.
    pub others_cpus: Option<f64>,
    /// Why there are no figures, or fewer.
    pub trouble: Option<Trouble>,
}

/// Everything that is printed.
pub struct Report<C> {
    /// The first peer, to which ratios are.
    pub reference: Option<&'static str>,
    /// Rows in the order of cells.
    pub rows: Vec<Row<C>>,
    /// The seed of the order of subjects, and of all random choices.
    pub seed: u64,
}

/// Makes rows of the measurements.
pub fn put_together<C: Conditions>(rounds: &Rounds, measured: &[Measured<C>]) -> Report<C> {
    let reference = rounds.peers.first().copied();
    let peer = |one: &Measured<C>| {
        measured.iter().find(|other| other.cell == one.cell && Some(other.subject) == reference)
    };
    let rows = measured.iter().flat_map(|one| {
        let steps = one.cell.steps().len().max(1);
        let ours = rounds.subjects.contains(&one.subject);
        (0..steps).map(move |step| Row { ours, ..row(one, step, peer(one)) })
    });
    Report { reference, rows: rows.collect(), seed: rounds.seed }
}

/// Tasks a second, p50, p99, CPU time a task.
const COMPARED: [fn(&Figures, usize) -> Option<f64>; 4] = [
    rate,
    |figures, step| figures.steps.get(step).map(|step| step.p50),
    |figures, step| figures.steps.get(step).map(|step| step.p99),
    |figures, _| Some(figures.cpu_us_per_task),
];

fn rate(figures: &Figures, step: usize) -> Option<f64> {
    if figures.steps.len() > 1 {
        return figures.steps.get(step).map(|step| step.goodput_per_s);
    }
    Some(figures.tasks_per_s)
}

fn row<C: Conditions>(one: &Measured<C>, step: usize, peer: Option<&Measured<C>>) -> Row<C> {
    let values = |of: &dyn Fn(&Figures) -> Option<f64>| -> Vec<f64> {
        one.figures.iter().filter_map(of).collect()
    };
    let counted = |of: fn(&Counted) -> u64| {
        median(values(&|figures| figures.counted.as_ref().map(|counted| of(counted) as f64)))
    };
    let ratio = |of: fn(&Figures, usize) -> Option<f64>| {
        let pairs = one.figures.iter().zip(&peer?.figures);
        Ratio::of(pairs.filter_map(|(ours, theirs)| Some((of(ours, step)?, of(theirs, step)?))))
    };
    Row {
        subject: one.subject,
        ours: false,
        cell: one.cell,
        part: one.cell.steps().get(step).copied(),
        repetitions: one.figures.len(),
        rate: quartiles(values(&|figures| rate(figures, step))),
        cpu_us: quartiles(values(&|figures| Some(figures.cpu_us_per_task))),
        latency: Latencies::medians(one.figures.iter().filter_map(|it| it.steps.get(step))),
        counted: [
            counted(|counted| counted.spawner_retries),
            counted(|counted| counted.steal_attempts),
            counted(|counted| counted.steal_hits),
        ],
        ratios: COMPARED.map(ratio),
        others_cpus: one.others_cpus(),
        trouble: one.trouble.clone(),
    }
}

impl<C> Report<C> {
    /// The failures, in one line; subjects that this machine can't have are none, if there is
    /// anything else.
    pub fn trouble(&self) -> Option<String> {
        let troubles = || self.rows.iter().filter_map(|row| row.trouble.as_ref());
        let nothing = self.rows.iter().all(|row| row.rate.is_none());
        Trouble::failures(troubles()).or_else(|| {
            let (how, why) = troubles().next().filter(|_| nothing)?.json();
            Some(format!("nothing was measured: {how}: {why}"))
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
    use std::fmt;

    const STEPS: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0];

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Place {
        ramp: bool,
    }

    impl Cell for Place {
        fn load(&self) -> Load {
            Load::Idle
        }
    }

    impl fmt::Display for Place {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "place {}", self.ramp)
        }
    }

    impl Conditions for Place {
        fn workers(&self) -> usize {
            2
        }

        fn steps(&self) -> &'static [f64] {
            if self.ramp { &STEPS } else { &[] }
        }

        fn put(&self, object: &mut Map<String, Value>) {
            object.insert("ramp".to_owned(), Value::Bool(self.ramp));
        }
    }

    fn measured(subject: &'static str, ramp: bool, rates: &[f64]) -> Measured<Place> {
        let steps = if ramp { 6 } else { 1 };
        let latencies = |step: usize| Latencies {
            p99: 1e9 / (step + 1) as f64,
            goodput_per_s: 10.0 * (step + 1) as f64,
            ..Latencies::default()
        };
        let figures = |&tasks_per_s: &f64| Figures {
            tasks_per_s,
            cpu_us_per_task: 1e6 / tasks_per_s,
            steps: (0..steps).map(latencies).collect(),
            counted: None,
        };
        Measured {
            cell: Place { ramp },
            subject,
            figures: rates.iter().map(figures).collect(),
            others: Vec::new(),
            trouble: None,
        }
    }

    fn report(ramp: bool) -> Report<Place> {
        let rounds = Rounds {
            subjects: vec!["lifo/steal-half"],
            peers: vec!["loop"],
            repetitions: 3,
            seed: 1,
        };
        let all = [
            measured("lifo/steal-half", ramp, &[30.0, 20.0, 40.0]),
            measured("loop", ramp, &[10.0, 10.0, 20.0]),
        ];
        put_together(&rounds, &all)
    }

    #[test]
    fn a_row_has_medians_and_paired_ratios_to_the_first_peer() {
        let report = report(false);
        let row = &report.rows[0];
        assert_eq!(row.rate.map(|rate| (rate.p25, rate.median)), Some((25.0, 30.0)));
        assert_eq!((row.repetitions, row.ours, row.part), (3, true, None));
        let ratios = row.ratios.map(|ratio| ratio.map(|ratio| ratio.of.median));
        assert_eq!(ratios, [Some(2.0), None, Some(1.0), Some(0.5)]);
        assert!(!report.rows[1].ours && report.trouble().is_none());
    }

    #[test]
    fn a_ramp_has_a_row_for_each_step_that_leads_with_what_was_done_in_time() {
        let report = report(true);
        assert_eq!(report.rows.len(), 12);
        let parts: Vec<_> = report.rows.iter().take(6).filter_map(|row| row.part).collect();
        assert_eq!(parts, STEPS);
        let good: Vec<_> = report.rows.iter().filter_map(|row| row.rate).collect();
        assert_eq!((good[0].median, good[5].median), (10.0, 60.0));
    }
}
