//! The values of a row of a server, and its columns.

use antiphon_report::table::si;
use antiphon_report::words::several;
use serde::Serialize;
use serde_json::{Value, json};

use super::Plan;
use super::cases::{Case, Cell};
use super::measure::Figures;
use crate::bench::benchmark::{Benchmark, ColumnsOf, RowOf};
use crate::bench::columns::Columns;
use crate::bench::ratio::{Better, Ratio};
use crate::bench::report::{Beside, Lead};

type Row = RowOf<Plan>;

/// The values of a row: medians, and ratios to the first peer.
#[derive(Serialize)]
pub struct Summary {
    /// Answers per second.
    #[serde(flatten)]
    pub answers: Lead,
    /// Medians of the quantiles of latencies.
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// CPU time of the server per answer.
    pub server_cpu_ns_per_op: Option<f64>,
    /// Ratio of answers per second.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The ratio of the 99th percentile.
    #[serde(flatten)]
    pub p99_ratio: Ratio,
    /// The ratio of CPU time.
    #[serde(flatten)]
    pub cpu_ratio: Ratio,
}

impl Summary {
    /// Summarises the repetitions of a server.
    pub fn of(one: &Beside<'_, Cell, Figures>) -> Self {
        Self {
            answers: one.lead("ops_per_s", |figures| figures.ops_per_s),
            p50_ns: one.median(|figures| figures.p50_ns),
            p99_ns: one.median(|figures| figures.p99_ns),
            server_cpu_ns_per_op: one.median(|figures| figures.server_cpu_ns_per_op),
            ratio: one.ratio("ratio", |figures| figures.ops_per_s),
            p99_ratio: one.ratio("p99_ratio", |figures| figures.p99_ns),
            cpu_ratio: one.ratio("cpu_ratio", |figures| figures.server_cpu_ns_per_op),
        }
    }
}

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        vec![Summary::of(one)]
    }

    fn body(&self, _rows: &[Row]) -> Value {
        let Self { bytes, clients, loader, seconds, .. } = self;
        json!({ "bytes": bytes, "clients": clients, "loader": loader, "seconds": seconds })
    }

    fn heading(&self, cell: &Cell) -> String {
        let Cell { load, case, rate, connections, workers } = *cell;
        let what = match case {
            Case::Echo => format!("Echo of {} bytes", self.bytes),
            Case::Http => "HTTP, kept alive".to_owned(),
        };
        let rate = rate.map_or(String::new(), |rate| format!(", {rate} requests a second"));
        let connections = several(connections as u64, "connection");
        let workers = several(workers as u64, "worker");
        format!("{what}: {connections}{rate}; {workers}, load {load}")
    }

    fn columns(&self, rows: &[Row]) -> ColumnsOf<Self> {
        Columns::of(rows)
            .subject("server")
            .quartiles(">answers/s", si, |of| of.answers.of)
            .ratio(Better::More, |of| of.ratio)
            .interval(|of| of.ratio)
            .time(">p50", |of| of.p50_ns)
            .time(">p99", |of| of.p99_ns)
            .ratio(Better::Less, |of| of.p99_ratio)
            .time(">CPU", |of| of.server_cpu_ns_per_op)
            .ratio(Better::Less, |of| of.cpu_ratio)
    }

    fn about(&self, _rows: &[Row]) -> String {
        ABOUT.to_owned()
    }
}

const ABOUT: &str = "\
Medians of repetitions; a ratio is the median of paired ratios. Latencies are from when a request
was sent, or due; CPU is that of all threads of the server.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds};

    fn measured(subject: &'static str, rates: &[f64]) -> Measured<Cell, Figures> {
        let figures = |&rate: &f64| Figures {
            ops_per_s: rate,
            p50_ns: 1e9 / rate,
            p99_ns: 3e9 / rate,
            server_cpu_ns_per_op: 100.0 + rate,
        };
        let (load, case, rate) = (Load::Idle, Case::Echo, None);
        let cell = Cell { load, case, rate, connections: 8, workers: 2 };
        Measured::of(cell, subject, rates.iter().map(figures).collect())
    }

    #[test]
    fn ratios_are_of_pairs_to_the_first_peer() {
        let rounds =
            Rounds { subjects: vec!["fibers"], peers: vec!["go", "tokio"], ..Rounds::default() };
        let all = [
            measured("fibers", &[300.0, 150.0, 600.0]),
            measured("go", &[100.0, 50.0, 200.0]),
            measured("tokio", &[1.0; 3]),
        ];
        let rows: Vec<_> =
            Beside::all(&rounds, &all).map(|one| one.row(Summary::of(&one))).collect();
        let of = |row: &Row| {
            let Summary { ratio, p99_ratio, cpu_ratio, .. } = row.summary;
            [ratio, p99_ratio, cpu_ratio].map(|ratio| ratio.median())
        };
        assert_eq!(of(&rows[0]), [Some(3.0), Some(1.0 / 3.0), Some(2.0)]);
        assert_eq!((rows[0].ours, rows[1].ours, rows[0].peer), (true, false, Some("go")));
        assert_eq!(rows[0].summary.server_cpu_ns_per_op, Some(400.0));
        assert_eq!(of(&rows[1]), [Some(1.0); 3]);
    }
}
