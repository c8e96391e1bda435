//! From repetitions to rows: medians, quartiles and paired ratios; and rows for scripts.

use antiphon_report::stats::{Quartiles, median, quartiles};
use serde_json::{Map, Value, json};

use super::Measured;
use super::cases::{Case, Cell};
use super::measure::Figures;
use crate::bench::ratio::Ratio;
use crate::bench::rounds::{Rounds, Trouble, mean};

/// The results of one runtime in one cell.
pub struct Row {
    /// Its name.
    pub subject: &'static str,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The conditions.
    pub cell: Cell,
    /// Repetitions that count.
    pub repetitions: usize,
    /// The leading figure of the case: a time, or bytes.
    pub lead: Option<Quartiles>,
    /// Median of the CPU time of all threads.
    pub cpu_ns: Option<f64>,
    /// The ratio to the first peer that has the case, and which that is.
    pub ratio: Option<(Ratio, &'static str)>,
    /// CPUs that others used meanwhile.
    pub others_cpus: Option<f64>,
    /// Why there are no figures, or fewer.
    pub trouble: Option<Trouble>,
}

/// Everything that is printed.
pub struct Report {
    /// Rows in the order of cells.
    pub rows: Vec<Row>,
    /// The subjects that have no rows of a case, because they do not have the case.
    pub absent: Vec<(Case, Vec<&'static str>)>,
    /// The time of a repetition.
    pub seconds: f64,
    /// The seed of the order of subjects.
    pub seed: u64,
}

/// Makes rows of the measurements.
pub fn put_together(rounds: &Rounds, measured: &[Measured]) -> Vec<Row> {
    measured.iter().map(|one| row(one, rounds, measured)).collect()
}

fn row(one: &Measured, rounds: &Rounds, measured: &[Measured]) -> Row {
    let is = |other: &&Measured, name: &str| other.cell == one.cell && other.subject == name;
    let mut peers =
        rounds.peers.iter().filter_map(|peer| measured.iter().find(|other| is(other, peer)));
    let ratio = peers.next().and_then(|peer| {
        let pairs = leads(one).zip(leads(peer));
        Some((Ratio::of(pairs)?, peer.subject))
    });
    let cpu: Vec<_> = one.figures.iter().filter_map(|figures| figures.cpu_ns_per_op).collect();
    Row {
        subject: one.subject,
        ours: rounds.subjects.contains(&one.subject),
        cell: one.cell,
        repetitions: one.figures.len(),
        lead: quartiles(leads(one).collect()),
        cpu_ns: median(cpu),
        ratio,
        others_cpus: one.others_cpus(),
        trouble: one.trouble.clone(),
    }
}

/// The leading figures of a case, by repetition.
fn leads(one: &Measured) -> impl Iterator<Item = f64> {
    let lead = |figures: &Figures| match one.cell.case {
        case if case.is_memory() => figures.bytes_per_task,
        _ => figures.ns_per_op,
    };
    one.figures.iter().filter_map(lead)
}

impl Report {
    /// The failures, in one line.
    pub fn trouble(&self) -> Option<String> {
        Trouble::failures(self.rows.iter().filter_map(|row| row.trouble.as_ref()))
    }

    /// CPUs that others used on average while the machine was meant to be idle.
    pub fn others_cpus(&self) -> Option<f64> {
        mean(self.rows.iter().filter_map(|row| row.others_cpus))
    }

    /// The object for scripts.
    pub fn json(&self) -> Value {
        let rows: Vec<_> = self.rows.iter().map(of_row).collect();
        let absent = self.absent.iter().map(|(case, names)| (case.name().to_owned(), json!(names)));
        let absent: Map<_, _> = absent.collect();
        json!({ "rows": rows, "absent": absent, "seconds": self.seconds, "seed": self.seed })
    }
}

fn of_row(row: &Row) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
    put("subject", json!(row.subject));
    put("peer", json!(row.ratio.map(|(_, peer)| peer)));
    put("ours", json!(row.ours));
    put("case", json!(row.cell.case.name()));
    put("load", json!(row.cell.load.name()));
    put("workers", json!(row.cell.workers));
    if row.cell.batch > 0 {
        put("batch", json!(row.cell.batch));
    }
    put("repetitions", json!(row.repetitions));
    if let Some(trouble) = &row.trouble {
        let (key, what) = trouble.json();
        put(key, json!(what));
        return Value::Object(object);
    }
    let lead = |figure: fn(Quartiles) -> f64| json!(row.lead.map(figure));
    if row.cell.case.is_memory() {
        put("bytes_per_task", lead(|of| of.median));
    } else {
        put("ns_per_op", lead(|of| of.median));
        put("cpu_ns_per_op", json!(row.cpu_ns));
    }
    put("p25", lead(|of| of.p25));
    put("p75", lead(|of| of.p75));
    put("others_cpus", json!(row.others_cpus));
    Ratio::put(row.ratio.map(|(ratio, _)| ratio), "ratio", &mut object);
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::tasks::cases::Case;

    fn measured(subject: &'static str, case: Case, values: &[f64]) -> Measured {
        let figures = |&value: &f64| Figures {
            ns_per_op: Some(value),
            cpu_ns_per_op: Some(2.0 * value),
            bytes_per_task: Some(value + 100.0),
        };
        Measured {
            cell: Cell { load: Load::Idle, case, batch: 1_000, workers: 1 },
            subject,
            figures: values.iter().map(figures).collect(),
            others: Vec::new(),
            trouble: None,
        }
    }

    #[test]
    fn a_ratio_is_of_pairs_to_the_first_peer_that_has_the_case() {
        let rounds = Rounds {
            subjects: vec!["pool"],
            peers: vec!["chili", "rayon", "smol"],
            repetitions: 3,
            seed: 1,
        };
        for (case, median, ratio) in
            [(Case::SpawnJoin, 30.0, 3.0), (Case::Idle, 130.0, 130.0 / 110.0)]
        {
            let all = [
                measured("smol", case, &[1.0; 3]),
                measured("pool", case, &[30.0, 15.0, 60.0]),
                measured("rayon", case, &[10.0, 5.0, 20.0]),
            ];
            let rows = put_together(&rounds, &all);
            assert_eq!(rows[1].lead.map(|lead| lead.median), Some(median));
            assert_eq!(
                rows[1].ratio.map(|(of, peer)| (of.of.median, peer)),
                Some((ratio, "rayon"))
            );
            assert_eq!((rows[1].ours, rows[2].ours, rows[1].cpu_ns), (true, false, Some(60.0)));
            let json = of_row(&rows[1]);
            assert_eq!((json["ns_per_op"].is_null(), json["bytes_per_task"].is_null()), {
                (case == Case::Idle, case != Case::Idle)
            });
        }
    }
}
