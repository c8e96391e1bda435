//! What came of simulations, as rows.

use serde_json::{Value, json};

use super::experiment::{Measured, Missing, Setting, busier_half};
use super::sweep::{Cell, Row};

/// One row of those that differ in their seeds only: that of the median of the work done, with the
/// least and the most that any has done. Of an even number, the lesser in the middle.
///
/// # Panics
///
/// If there are none.
pub fn of_seeds(setting: &Setting, rows: &[Row]) -> Value {
    let mut objects: Vec<_> = rows.iter().map(|row| object(setting, row)).collect();
    let missing = |object: &Value| object["failed"].is_string() || object["not_here"].is_string();
    if let Some(place) = objects.iter().position(missing) {
        return objects.swap_remove(place);
    }
    let work = |object: &Value| object["ops_per_s"].as_f64().unwrap_or_default();
    objects.sort_by(|one, other| work(one).total_cmp(&work(other)));
    let (least, most) = (work(&objects[0]), work(&objects[objects.len() - 1]));
    let mut median = objects.swap_remove((objects.len() - 1) / 2);
    median["ops_per_s_of_seeds"] = json!({ "least": least, "most": most, "seeds": rows.len() });
    median
}

/// What is put into each row beside its figures.
fn object(setting: &Setting, row: &Row) -> Value {
    let Cell { subject, case, threads, seed } = row.cell;
    let mut object = json!({
        "model": true, "machine": setting.machine.name,
        "arbitration": setting.arbitration.name(), "pages": setting.pages.to_string(),
        "seed": seed,
        "subject": subject.name, "case": case.name, "threads": threads,
    });
    let figures = match &row.measured {
        Ok(measured) => figures(setting, row.cell, measured),
        Err(Missing::Stuck(stuck)) => json!({ "failed": stuck.to_string() }),
        Err(Missing::NotHere(why)) => json!({ "not_here": why }),
    };
    for (key, value) in figures.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    object
}

fn figures(setting: &Setting, cell: Cell, measured: &Measured) -> Value {
    let Measured { outcome, completed, waits, .. } = measured;
    let counts = &outcome.counts;
    let each = |count: u64| (*completed > 0).then(|| round(count as f64 / *completed as f64));
    let share = |(whole, part): (u64, u64)| (whole > 0).then(|| round(part as f64 / whole as f64));
    let (locks, total) = ((cell.case.locks)(&setting.machine), outcome.total_operations());
    json!({
        "servers": cell.subject.servers * locks,
        "ops_per_s": total as f64 * 1e9 / setting.limit_ns as f64,
        "jain": (total > 0).then(|| round(outcome.fairness())),
        "busier_half": busier_half(&outcome.operations).map(round),
        "threads_in_1000": measured.lwss.map(round),
        "remote_transfers_per_op": each(counts.remote_transfers),
        "local_transfers_per_op": each(counts.local_transfers),
        "atomics_per_op": each(counts.owner_atomics + counts.other_atomics),
        "stays_on_socket": share(measured.kept),
        "handover_ns": share(measured.handovers),
        "handovers_with_wake": share((measured.handovers.0, measured.wakes)),
        "wait_ns": { "p50": waits.p50(), "p99": waits.p99() },
        "longest_wait_ns": waits.max_ns,
        "failed_tries_per_op": each(measured.failed_tries),
        "parks": counts.parks, "wakes": counts.wakes, "wakes_per_op": each(counts.wakes),
        "switches": counts.switches, "preemptions": counts.preemptions,
        "locks": locks, "lock_bytes": locks * cell.subject.bytes,
        "trace": format!("{:016x}", outcome.trace_hash),
    })
}

/// Three digits behind the point are more than a simulated figure is worth.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Simulated memory operations of all rows.
pub fn operations(rows: &[Row]) -> u64 {
    let measured = rows.iter().filter_map(|row| row.measured.as_ref().ok());
    measured
        .map(|measured| {
            let counts = &measured.outcome.counts;
            counts.hits + counts.local_transfers + counts.remote_transfers + counts.memory_reads
        })
        .sum()
}
