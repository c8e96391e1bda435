//! The report of `bench events`: keys for scripts, tables for people.

use antiphon_report::table::{Cell as Field, duration};
use serde_json::{Value, json};

use super::cases::{Case, Cell};
use super::measure::Figures;
use super::rows::{Row, Summary};
use super::{Plan, subjects};
use crate::bench::benchmark::{Benchmark, ColumnsOf};
use crate::bench::columns::Columns;
use crate::bench::ratio::Better::Less;
use crate::bench::report::{Beside, failures, unmeasured};

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        vec![Summary::of(one)]
    }

    fn conditions(&self, row: &Row) -> Value {
        let Cell { load, gap_us, target, .. } = row.cell;
        let mut keys = json!({
            "case": row.cell.name(), "load": load, "threads": threads(&row.cell),
        });
        if gap_us > 0 {
            keys["gap_us"] = gap_us.into();
        }
        if let Some(cpu) = target {
            keys["target"] = cpu.into();
        }
        keys
    }

    fn body(&self, _rows: &[Row]) -> Value {
        json!({ "seconds": self.seconds, "best_of": subjects::COMMON })
    }

    fn is_together(&self, one: &Cell, other: &Cell) -> bool {
        let of = |cell: &Cell| (cell.load, cell.case, cell.gap_us, cell.target);
        of(one) == of(other)
    }

    fn heading(&self, cell: &Cell) -> String {
        heading(cell)
    }

    fn columns(&self, rows: &[Row]) -> ColumnsOf<Self> {
        let columns = Columns::of(rows);
        match rows[0].cell.case {
            Case::Noise | Case::Clock => lead(columns.subject(""), ">p50")
                .time(">p99", |of| of.second.of)
                .time(">σ", |of| of.sigma_ns)
                .time(">ahead", |of| of.offset_ns)
                .time(">at most by", |of| of.doubt_ns),
            Case::SenderAlone => lead(columns.subject("mechanism"), ">sender")
                .time(">p99", |of| of.second.of)
                .ratio(Less, |of| of.ratio)
                .interval(|of| of.ratio),
            Case::Broadcast => {
                let waiters = |row: &Row| Field::number(row.cell.waiters.to_string());
                lead(columns.condition(">waiters", waiters).subject("mechanism"), ">last")
                    .time(">σ", |of| of.sigma_ns)
                    .ratio(Less, |of| of.ratio)
                    .interval(|of| of.ratio)
                    .field(">σ", |row| row.summary.ratio_second.field(row.ours, Less))
                    .interval(|of| of.ratio_second)
                    .time(">sender", |of| of.sender_ns.flatten())
                    .time(">CPU", |of| of.cpu_ns_per_event)
            }
            _ => lead(columns.subject("mechanism"), ">p50")
                .time(">p99", |of| of.second.of)
                .ratio(Less, |of| of.ratio)
                .interval(|of| of.ratio)
                .field(">best", |row| row.summary.ratio_best.field(row.ours, Less))
                .interval(|of| of.ratio_best)
                .field(">p99 to best", |row| row.summary.ratio_best_second.field(row.ours, Less))
                .time(">sender", |of| of.sender_ns.flatten())
                .time(">CPU", |of| of.cpu_ns_per_event)
                .number(">sleeps", |sleeps| format!("{sleeps:.2}"), |of| of.sleeps_per_event),
        }
    }

    fn about(&self, _rows: &[Row]) -> String {
        ABOUT.to_owned()
    }

    fn trouble(&self, rows: &[Row]) -> Option<String> {
        failures(rows).or_else(|| {
            let [subject, how, why] = unmeasured(rows)?;
            Some(format!("nothing was measured: {subject} {how}: {why}"))
        })
    }
}

const ABOUT: &str = "\
Medians of repetitions; a ratio is the median of paired ratios, with the interval that holds
the true one in 95 of 100 cases. CPU: of all receivers, and of the sender while it tells. Sleeps:
of a receiver for an event.
";

fn lead(columns: Columns<Cell, Summary>, head: &str) -> Columns<Cell, Summary> {
    columns.quartiles(head, duration, |of| of.lead.of)
}

/// The heading of a table.
pub fn heading(cell: &Cell) -> String {
    let (load, gap) = (cell.load.name(), cell.gap_us);
    let what = match cell.case {
        Case::Running => "Both threads awake, in turn: half a round trip".to_owned(),
        Case::Parked | Case::ParkedIdle => format!("A receiver that has slept for {gap} µs"),
        Case::BusyTarget => "A sleeper whose CPU another thread has".to_owned(),
        Case::SenderAlone => "Cost of a notification when no thread waits".to_owned(),
        Case::Broadcast => "Several sleepers notified at once".to_owned(),
        Case::Noise => "The same work again and again, without any event".to_owned(),
        Case::Clock => "How far the counters of both CPUs are apart".to_owned(),
    };
    let target = cell.target.map_or(String::new(), |cpu| format!(", CPU {cpu}"));
    format!("{what}, load {load}{target}")
}

/// Returns the number of threads that take part.
fn threads(cell: &Cell) -> usize {
    match cell.case {
        Case::Noise | Case::SenderAlone => 1,
        Case::BusyTarget => 3,
        Case::Broadcast => cell.waiters + 1,
        _ => 2,
    }
}
