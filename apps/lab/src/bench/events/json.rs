//! Rows as scripts read them.
//!
//! | case | leading figure | second figure |
//! |---|---|---|
//! | `running`, `parked`, `parked-idle-1ms`, `busy-target` | `p50_ns` | `p99_ns` |
//! | `sender-alone` | `sender_ns` | `sender_p99_ns` |
//! | `broadcast-N` | `last_ns` | `sigma_ns` |
//! | `noise`, `clock` | `p50_ns` | `p99_ns` |
//!
//! `ratio` is of the leading figure, `ratio_second` of the other one; `ratio_best` and
//! `ratio_best_second` are the same against the best of the [common](subjects::COMMON) peers.

use antiphon_report::stats::Below;
use serde_json::{Map, Value, json};

use super::cases::{Case, Cell};
use super::rows::{Report, Row};
use super::{MACHINE, subjects};
use crate::bench::ratio::Ratio;

/// The body of the JSON report.
pub fn body(report: &Report) -> Value {
    let rows: Vec<_> = report.rows.iter().map(|row| of_row(row, report.reference)).collect();
    json!({
        "rows": rows, "seconds": report.seconds, "seed": report.seed,
        "best_of": subjects::COMMON,
    })
}

fn of_row(row: &Row, reference: Option<&str>) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
    put("subject", json!(row.subject));
    put("peer", json!(reference.filter(|_| row.subject != MACHINE)));
    put("ours", json!(row.ours));
    put("case", json!(row.cell.name()));
    put("load", json!(row.cell.load.name()));
    put("threads", json!(threads(&row.cell)));
    if row.cell.gap_us > 0 {
        put("gap_us", json!(row.cell.gap_us));
    }
    if let Some(cpu) = row.cell.target {
        put("target", json!(cpu));
    }
    put("repetitions", json!(row.repetitions));
    if let Some(trouble) = &row.trouble {
        let (key, what) = trouble.json();
        put(key, json!(what));
        return Value::Object(object);
    }
    put("trials", json!(row.trials));
    put("batch", json!(row.batch));
    let [lead, second] = row.leads.map(|lead| lead.map(|lead| lead.median));
    let (first_key, second_key) = keys(row.cell.case);
    put(first_key, json!(lead));
    put(second_key, json!(second));
    if row.cell.case != Case::SenderAlone {
        put("sender_ns", json!(row.sender_ns));
    }
    put("sigma_ns", json!(row.sigma_ns));
    put("cpu_ns_per_event", json!(row.cpu_ns_per_event));
    put("sleeps_per_event", json!(row.sleeps_per_event));
    if let Some((offset, doubt)) = row.clock {
        put("offset_ns", json!(offset));
        put("doubt_ns", json!(doubt));
    }
    put("cdf_ns", Below::object(&row.cdf));
    put("p25", json!(row.leads[0].map(|lead| lead.p25)));
    put("p75", json!(row.leads[0].map(|lead| lead.p75)));
    put("others_cpus", json!(row.others_cpus));
    put("best", json!(row.best[0].map(|(_, name)| name)));
    put("best_second", json!(row.best[1].map(|(_, name)| name)));
    Ratio::put(row.ratios[0], "ratio", &mut object);
    Ratio::put(row.ratios[1], "ratio_second", &mut object);
    Ratio::put(row.best[0].map(|(ratio, _)| ratio), "ratio_best", &mut object);
    Ratio::put(row.best[1].map(|(ratio, _)| ratio), "ratio_best_second", &mut object);
    Value::Object(object)
}

/// The keys of the leading figure and the second one.
fn keys(case: Case) -> (&'static str, &'static str) {
    match case {
        Case::SenderAlone => ("sender_ns", "sender_p99_ns"),
        Case::Broadcast => ("last_ns", "sigma_ns"),
        _ => ("p50_ns", "p99_ns"),
    }
}

/// Threads that have a part in it.
fn threads(cell: &Cell) -> usize {
    match cell.case {
        Case::Noise | Case::SenderAlone => 1,
        Case::BusyTarget => 3,
        Case::Broadcast => cell.waiters + 1,
        _ => 2,
    }
}
