//! From repetitions to rows: medians, quartiles and paired ratios; and rows for scripts.

use antiphon_report::stats::{Quartiles, median, quartiles};
use serde_json::{Map, Value, json};

use super::Measured;
use super::cases::{Cell, Loader};
use super::measure::Figures;
use crate::bench::ratio::Ratio;
use crate::bench::rounds::{Rounds, Trouble, mean};

/// The results of one server in one cell.
pub struct Row {
    /// Its name.
    pub subject: &'static str,
    /// Whether it is one of ours.
    pub ours: bool,
    /// The conditions.
    pub cell: Cell,
    /// Repetitions that count.
    pub repetitions: usize,
    /// Answers a second.
    pub rate: Option<Quartiles>,
    /// Medians of the quantiles of latencies, in nanoseconds.
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// Median of the server's CPU time, by answer.
    pub cpu_ns: Option<f64>,
    /// Ratios to the first peer: of answers a second, of the 99th percentile, and of the CPU time.
    pub ratios: [Option<Ratio>; 3],
    /// CPUs that others used meanwhile.
    pub others_cpus: Option<f64>,
    /// Why there are no figures, or fewer.
    pub trouble: Option<Trouble>,
}

/// Everything that is printed.
pub struct Report {
    /// Rows in the order of cells.
    pub rows: Vec<Row>,
    /// The subject that ratios refer to.
    pub reference: Option<&'static str>,
    /// The size of a message.
    pub bytes: usize,
    /// Threads of clients.
    pub clients: usize,
    /// The program that sent requests.
    pub loader: Loader,
    /// How long a repetition is measured.
    pub seconds: f64,
    /// The seed of the order of subjects.
    pub seed: u64,
}

type Of = fn(&Figures) -> f64;

/// The figures that have ratios: `ratio`, `p99_ratio` and `cpu_ratio`.
const RATIOS: [(&str, Of); 3] = [
    ("ratio", |figures| figures.ops_per_s),
    ("p99_ratio", |figures| figures.p99_ns),
    ("cpu_ratio", |figures| figures.server_cpu_ns_per_op),
];

/// Makes rows of the measurements.
pub fn put_together(rounds: &Rounds, measured: &[Measured]) -> Vec<Row> {
    measured.iter().map(|one| row(one, rounds, measured)).collect()
}

fn row(one: &Measured, rounds: &Rounds, measured: &[Measured]) -> Row {
    let all = |of: Of| one.figures.iter().map(of);
    let is =
        |other: &&Measured| other.cell == one.cell && Some(&other.subject) == rounds.peers.first();
    let peer = measured.iter().find(is);
    let ratio = |(_, of): (&str, Of)| Ratio::of(all(of).zip(peer?.figures.iter().map(of)));
    Row {
        subject: one.subject,
        ours: rounds.subjects.contains(&one.subject),
        cell: one.cell,
        repetitions: one.figures.len(),
        rate: quartiles(all(|figures| figures.ops_per_s).collect()),
        p50_ns: median(all(|figures| figures.p50_ns).collect()),
        p99_ns: median(all(|figures| figures.p99_ns).collect()),
        cpu_ns: median(all(|figures| figures.server_cpu_ns_per_op).collect()),
        ratios: RATIOS.map(ratio),
        others_cpus: one.others_cpus(),
        trouble: one.trouble.clone(),
    }
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
        let rows: Vec<_> = self.rows.iter().map(|row| self.of_row(row)).collect();
        json!({
            "rows": rows,
            "bytes": self.bytes,
            "clients": self.clients,
            "loader": self.loader,
            "seconds": self.seconds,
            "seed": self.seed,
        })
    }

    fn of_row(&self, row: &Row) -> Value {
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
        put("subject", json!(row.subject));
        put("peer", json!(self.reference));
        put("ours", json!(row.ours));
        put("case", json!(row.cell.case.name()));
        put("load", json!(row.cell.load.name()));
        put("connections", json!(row.cell.connections));
        put("rate", json!(row.cell.rate));
        put("workers", json!(row.cell.workers));
        put("repetitions", json!(row.repetitions));
        if let Some(trouble) = &row.trouble {
            let (key, what) = trouble.json();
            put(key, json!(what));
            return Value::Object(object);
        }
        put("ops_per_s", json!(row.rate.map(|of| of.median)));
        put("p25", json!(row.rate.map(|of| of.p25)));
        put("p75", json!(row.rate.map(|of| of.p75)));
        put("p50_ns", json!(row.p50_ns));
        put("p99_ns", json!(row.p99_ns));
        put("server_cpu_ns_per_op", json!(row.cpu_ns));
        put("others_cpus", json!(row.others_cpus));
        for ((name, _), ratio) in RATIOS.into_iter().zip(row.ratios) {
            Ratio::put(ratio, name, &mut object);
        }
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::serve::cases::Case;

    fn measured(subject: &'static str, rates: &[f64]) -> Measured {
        let figures = |&rate: &f64| Figures {
            ops_per_s: rate,
            p50_ns: 1e9 / rate,
            p99_ns: 3e9 / rate,
            server_cpu_ns_per_op: 100.0 + rate,
        };
        let (load, case, rate) = (Load::Idle, Case::Echo, None);
        Measured {
            cell: Cell { load, case, rate, connections: 8, workers: 2 },
            subject,
            figures: rates.iter().map(figures).collect(),
            others: Vec::new(),
            trouble: None,
        }
    }

    #[test]
    fn ratios_are_of_pairs_to_the_first_peer() {
        let rounds = Rounds {
            subjects: vec!["fibers"],
            peers: vec!["go", "tokio"],
            repetitions: 3,
            seed: 1,
        };
        let all = [
            measured("fibers", &[300.0, 150.0, 600.0]),
            measured("go", &[100.0, 50.0, 200.0]),
            measured("tokio", &[1.0; 3]),
        ];
        let rows = put_together(&rounds, &all);
        let of = |row: &Row| row.ratios.map(|ratio| ratio.expect("a pair").of.median);
        let [rate, p99, cpu] = of(&rows[0]);
        assert_eq!((rate, p99, cpu), (3.0, 1.0 / 3.0, 2.0));
        assert_eq!((rows[0].ours, rows[1].ours, rows[0].cpu_ns), (true, false, Some(400.0)));
        assert_eq!(of(&rows[1]), [1.0; 3]);
    }
}
