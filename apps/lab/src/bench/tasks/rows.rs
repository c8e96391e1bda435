//! The values of a row of a runtime, and its columns.

use antiphon_report::table::duration;
use antiphon_report::words::several;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Plan;
use super::cases::{Case, Cell};
use super::measure::Figures;
use crate::bench::benchmark::{Benchmark, ColumnsOf, RowOf};
use crate::bench::columns::Columns;
use crate::bench::ratio::{Better, Ratio};
use crate::bench::report::{Beside, Lead};
use crate::named::Named as _;

type Row = RowOf<Plan>;

/// The values of a row.
#[derive(Serialize)]
pub struct Summary {
    /// Leading figure of the case: a time, or bytes.
    #[serde(flatten)]
    pub lead: Lead,
    /// Median of the CPU time of all threads, where a time is measured.
    #[serde(rename = "cpu_ns_per_op", skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<Option<f64>>,
    /// The ratio to the first peer that has the case.
    #[serde(flatten)]
    pub ratio: Ratio,
}

impl Summary {
    /// Summarises the repetitions of a runtime.
    pub fn of(one: &Beside<'_, Cell, Figures>) -> Self {
        let is_memory = one.cell().case.is_memory();
        let lead = |figures: &Figures| match is_memory {
            true => figures.bytes_per_task,
            false => figures.ns_per_op,
        };
        Self {
            lead: one.lead(if is_memory { "bytes_per_task" } else { "ns_per_op" }, lead),
            cpu_ns: (!is_memory).then(|| one.median(|figures| figures.cpu_ns_per_op)),
            ratio: one.ratio("ratio", lead),
        }
    }
}

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        vec![Summary::of(one)]
    }

    fn conditions(&self, row: &Row) -> Value {
        let mut keys = json!(row.cell);
        keys["peer"] = peer(row).into();
        keys
    }

    fn body(&self, _rows: &[Row]) -> Value {
        let absent = self.absent().into_iter();
        let absent: Map<_, _> =
            absent.map(|(case, names)| (case.name().to_owned(), json!(names))).collect();
        json!({ "absent": absent, "seconds": self.seconds })
    }

    fn heading(&self, cell: &Cell) -> String {
        let (load, batch) = (cell.load, cell.batch);
        let what = match cell.case {
            Case::SpawnJoin => {
                format!("Spawn, run and join: tasks that do nothing, {batch} at once")
            }
            Case::ForkJoin => "Fork and join: Fibonacci numbers, a task for each call".to_owned(),
            Case::Idle => {
                return format!("Memory of a task that has not run, of {batch}; load {load}");
            }
            Case::Yield => format!("Yield: {batch} tasks in turn"),
            Case::Channel => format!("A channel: messages to another task, room for {batch}"),
            Case::Across => {
                format!("A channel: messages from one worker's task to another's, room for {batch}")
            }
            Case::Select => format!("A select: messages of two tasks to another, room for {batch}"),
            Case::Parked => {
                return format!("Memory of a task that waits, of {batch}; load {load}");
            }
        };
        format!("{what}; {}, load {load}", several(cell.workers as u64, "worker"))
    }

    fn columns(&self, rows: &[Row]) -> ColumnsOf<Self> {
        let case = rows[0].cell.case;
        let lead = |of: &Summary| of.lead.of;
        let columns = Columns::to(rows.iter().find_map(peer)).subject("runtime");
        let head = match case {
            Case::Channel | Case::Across | Case::Select => ">a message",
            Case::Yield => ">a yield",
            _ => ">a task",
        };
        let columns = match case.is_memory() {
            true => columns.quartiles(">bytes", |bytes| format!("{bytes:.0}"), lead),
            false => columns.quartiles(head, duration, lead),
        };
        let columns = columns.ratio(Better::Less, |of| of.ratio).interval(|of| of.ratio);
        if case.is_memory() { columns } else { columns.time(">CPU", |of| of.cpu_ns.flatten()) }
    }

    fn about(&self, _rows: &[Row]) -> String {
        let absent = self.absent().into_iter().map(|(case, names)| {
            format!("No {}, so not measured: {}\n", case.name(), names.join(", "))
        });
        absent.collect::<String>() + ABOUT
    }
}

/// Returns the peer of a row, if the row has a ratio.
fn peer(row: &Row) -> Option<&'static str> {
    row.peer.filter(|_| row.summary.ratio.of.is_some())
}

const ABOUT: &str = "\
Medians of repetitions; a ratio is the median of paired ratios, with the interval that holds
the true one in 95 of 100 cases; less is better. CPU: of all threads.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds};

    fn measured(subject: &'static str, case: Case, values: &[f64]) -> Measured<Cell, Figures> {
        let figures = |&value: &f64| Figures {
            ns_per_op: Some(value),
            cpu_ns_per_op: Some(2.0 * value),
            bytes_per_task: Some(value + 100.0),
        };
        let cell = Cell { load: Load::Idle, case, batch: 1_000, workers: 1 };
        Measured::of(cell, subject, values.iter().map(figures).collect())
    }

    #[test]
    fn a_ratio_is_of_pairs_to_the_first_peer_that_has_the_case() {
        let rounds = Rounds {
            subjects: vec!["pool"],
            peers: vec!["chili", "rayon", "smol"],
            ..Rounds::default()
        };
        for (case, median, ratio, cpu) in [
            (Case::SpawnJoin, 30.0, 3.0, Some(Some(60.0))),
            (Case::Idle, 130.0, 130.0 / 110.0, None),
        ] {
            let all = [
                measured("smol", case, &[1.0; 3]),
                measured("pool", case, &[30.0, 15.0, 60.0]),
                measured("rayon", case, &[10.0, 5.0, 20.0]),
            ];
            let rows: Vec<_> =
                Beside::all(&rounds, &all).map(|one| one.row(Summary::of(&one))).collect();
            let Summary { lead, cpu_ns, ratio: to } = &rows[1].summary;
            assert_eq!((lead.median(), to.median()), (Some(median), Some(ratio)));
            assert_eq!((peer(&rows[1]), *cpu_ns), (Some("rayon"), cpu));
            assert_eq!((rows[1].ours, rows[2].ours), (true, false));
            let json = serde_json::json!(rows[1].summary);
            assert_eq!((json["ns_per_op"].is_null(), json["bytes_per_task"].is_null()), {
                (case == Case::Idle, case != Case::Idle)
            });
        }
    }
}
