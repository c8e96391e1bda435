//! Rows as scripts read them. `ratio` is of tasks a second (of a step of the ramp: of packets done
//! in time), `ratio_p50`, `ratio_p99` and `ratio_cpu` of the other leading figures.

use serde_json::{Map, Value, json};

use super::rows::{Conditions, Report, Row};
use crate::bench::ratio::Ratio;

const COUNTED: [&str; 3] = ["spawner_retries", "steal_attempts", "steal_hits"];
const RATIOS: [&str; 4] = ["ratio", "ratio_p50", "ratio_p99", "ratio_cpu"];

/// The body of the JSON report.
pub fn body<C: Conditions>(report: &Report<C>) -> Value {
    let rows: Vec<_> = report.rows.iter().map(|row| of_row(row, report.reference)).collect();
    json!({ "rows": rows, "seed": report.seed })
}

/// A row.
pub fn of_row<C: Conditions>(row: &Row<C>, reference: Option<&str>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
    put("subject", json!(row.subject));
    put("policy", json!(row.ours.then_some(row.subject)));
    put("peer", json!(reference));
    put("ours", json!(row.ours));
    put("load", json!(row.cell.load().name()));
    put("workers", json!(row.cell.workers()));
    put("repetitions", json!(row.repetitions));
    row.cell.put(&mut object);
    let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
    if let Some(part) = row.part {
        put("of_capacity", json!(part));
    }
    if let Some(trouble) = &row.trouble {
        let (key, what) = trouble.json();
        put(key, json!(what));
        return object;
    }
    let seen = &row.latency;
    put("latency_ns", seen.json());
    let rate = row.rate.map(|rate| rate.median);
    if row.part.is_some() {
        put("offered_per_s", json!(seen.offered_per_s));
        put("goodput_per_s", json!(rate));
        put("backlog", json!(seen.backlog));
    } else {
        put("tasks_per_s", json!(rate));
    }
    put("p25", json!(row.rate.map(|rate| rate.p25)));
    put("p75", json!(row.rate.map(|rate| rate.p75)));
    put("cpu_us_per_task", json!(row.cpu_us.map(|cpu| cpu.median)));
    for (name, counted) in COUNTED.into_iter().zip(row.counted) {
        put(name, json!(counted));
    }
    put("others_cpus", json!(row.others_cpus));
    for (name, ratio) in RATIOS.into_iter().zip(row.ratios) {
        Ratio::put(ratio, name, &mut object);
    }
    object
}
