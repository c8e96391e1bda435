//! Rows as scripts read them. `ratio` is of tasks a second (of a step of the ramp: of packets done
//! in time), `ratio_p50`, `ratio_p99` and `ratio_cpu` of the other leading figures.

use serde_json::{Map, Value, json};

use super::goal::Goal;
use super::rows::{Report, Row};
use crate::bench::ratio::Ratio;

const COUNTED: [&str; 3] = ["spawner_retries", "steal_attempts", "steal_hits"];
const RATIOS: [&str; 4] = ["ratio", "ratio_p50", "ratio_p99", "ratio_cpu"];

/// The body of the JSON report.
pub fn body(report: &Report, goal: Option<Goal>) -> Value {
    let row = |row: &Row| {
        let mut object = of_row(row, report.reference);
        if let Some(goal) = goal {
            object.insert("meets_goal".to_owned(), json!(goal.is_met(row)));
        }
        object
    };
    let rows: Vec<_> = report.rows.iter().map(row).collect();
    let goal = goal.map(|goal| goal.to_string());
    json!({ "rows": rows, "seed": report.seed, "goal": goal })
}

fn of_row(row: &Row, reference: Option<&str>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| _ = object.insert(key.to_owned(), value);
    put("subject", json!(row.subject));
    put("policy", json!(row.ours.then_some(row.subject)));
    put("peer", json!(reference));
    put("ours", json!(row.ours));
    put("case", json!(row.cell.case.to_string()));
    put("form", json!(row.cell.form.name()));
    put("heavy", json!(row.cell.heavy.map(|heavy| heavy.name())));
    put("copies", json!(row.cell.copies.name()));
    put("load", json!(row.cell.load.name()));
    put("workers", json!(row.cell.workers));
    put("repetitions", json!(row.repetitions));
    if let Some(part) = row.part {
        put("of_capacity", json!(part));
    }
    if let Some(trouble) = &row.trouble {
        let (key, what) = trouble.json();
        put(key, json!(what));
        return object;
    }
    let seen = &row.latency;
    put(
        "latency_ns",
        json!({
            "mean": seen.mean, "p20": seen.p20, "p50": seen.p50, "p99": seen.p99, "p999": seen.p999,
            "p9999": seen.p9999, "max": seen.max,
        }),
    );
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
