//! A short measurement of every lock, for the marks in `antiphon locks --measure`, which runs it as
//! a separate program and reads the rows from its stdout.

use std::process::ExitCode;

use antiphon_linux::end_with_parent;
use serde_json::{Value, json};

use super::measure::Case;
pub use super::plan::Plan;
use crate::bench::benchmark;
use crate::bench::neighbours::Load;
use crate::ticks::Ticks;
use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_report::say;
use antiphon_report::survey::Extent;

use super::plan::{Cell, Workload, cells};
use super::subjects::Family;
use crate::bench::rounds::{Measurement, Rounds};

/// Percentage of critical sections of a readers-writer lock that only read.
const READS: u32 = 90;
/// Threads per CPU of an oversubscribed machine.
const CROWD: usize = 8;

/// Measures all locks and prints their rows as one JSON list. Takes some minutes.
///
/// # Errors
///
/// If this program can't start processes, or stdout can't be written.
pub fn run(extent: Extent) -> Result<ExitCode, Failure> {
    end_with_parent();
    let plans = plans(extent);
    let mut progress = Progress::new(plans.iter().map(Measurement::steps).sum());
    let rows = rows(&plans, &mut progress)?;
    drop(progress);
    say(&format!("{}\n", Value::from(rows)))?;
    Ok(ExitCode::SUCCESS)
}

/// The plans of both families.
fn plans(extent: Extent) -> Vec<Plan> {
    [Family::Exclusive, Family::Shared].map(|family| plan(family, extent)).into()
}

fn plan(family: Family, Extent { seconds, repetitions }: Extent) -> Plan {
    let (alone, reads): (&[Case], _) = match family {
        Family::Exclusive => (&[Case::Uncontended], None),
        Family::Shared => (&[Case::UncontendedRead, Case::UncontendedWrite], Some(READS)),
    };
    let alone = alone.iter().map(|&case| Workload { case, reads: None });
    let contended = [Case::Short, Case::FiveMicroseconds].map(|case| Workload { case, reads });
    let work: Vec<_> = alone.chain(contended).collect();
    Plan {
        family,
        cells: cells(&[Load::Idle], &work, &[cpus(), CROWD * cpus()]),
        rounds: Rounds {
            subjects: family.ours().to_vec(),
            peers: family.peers().to_vec(),
            repetitions,
            seed: 1,
            ..Rounds::default()
        },
        seconds: Some(seconds),
        ticks: Ticks::calibrate(),
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the role of a cell in the table.
fn role(cell: Cell) -> &'static str {
    match cell.case {
        _ if !cell.case.contended() => "low",
        _ if cell.threads > cpus() => "oversubscribed",
        Case::Short => "medium",
        _ => "high",
    }
}

/// Carries out `plans`; rows are those of `bench`, with `family` and `role`.
///
/// # Errors
///
/// If this program can't start processes. A failed lock has a row that says so.
fn rows(plans: &[Plan], progress: &mut Progress) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    for plan in plans {
        let rows = benchmark::rows(plan, &plan.carry_out(progress)?);
        for (row, mut value) in rows.iter().zip(benchmark::objects(plan, &rows)) {
            value["family"] = json!(plan.family.name());
            value["role"] = json!(role(row.cell));
            all.push(value);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list that `antiphon locks` shows, as of the measurement of its marks.
    const LISTED: &str = include_str!("../../../../../docs/results/locks.json");

    #[test]
    fn every_lock_that_is_measured_is_listed() {
        let report: Value = serde_json::from_str(LISTED).expect("a report");
        let all = report["locks"].as_array().expect("a list");
        for family in [Family::Exclusive, Family::Shared] {
            for (ours, measured) in [(true, family.ours()), (false, family.peers())] {
                let listed = all.iter().filter(|lock| lock["kind"] == family.name());
                let listed = listed.filter(|lock| lock["ours"] == ours);
                let names: Vec<_> = listed.filter_map(|lock| lock["name"].as_str()).collect();
                // A lock for comparison may be newer than the report.
                let is_new =
                    |name: &&&str| family.compared().contains(*name) && !names.contains(*name);
                let measured: Vec<_> =
                    measured.iter().filter(|name| !is_new(name)).copied().collect();
                assert_eq!(names, measured, "{}", family.name());
            }
        }
    }

    #[test]
    fn every_lock_is_measured_in_every_role() {
        for plan in plans(Extent { seconds: 0.1, repetitions: 1 }) {
            let roles: Vec<_> = plan.cells.iter().map(|&cell| role(cell)).collect();
            for wanted in ["low", "medium", "high", "oversubscribed"] {
                assert!(roles.contains(&wanted), "{wanted} of {:?}", plan.family);
            }
            assert!(
                plan.rounds.all_subjects().count()
                    == plan.family.ours().len() + plan.family.peers().len()
            );
        }
    }
}
