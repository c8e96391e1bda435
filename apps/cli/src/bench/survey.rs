//! A small measurement of every lock, for the marks in `antiphon locks`.

use serde_json::{Value, json};

use super::measure::{Case, Ticks};
use super::neighbours::Load;
pub use super::plan::Plan;
use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;

use super::plan::{Cell, Workload, cells};
use super::rounds::Rounds;
use super::rows;
use super::subjects::Family;

/// How long each repetition measures, and how many count.
#[derive(Clone, Copy)]
pub struct Extent {
    /// Seconds of each.
    pub seconds: f64,
    /// As many.
    pub repetitions: usize,
}

/// Of a hundred critical sections of a readers-writer lock, those that read.
const READS: u32 = 90;
/// Threads for each CPU of an oversubscribed machine.
const CROWD: usize = 8;

/// The plans of both families.
pub fn plans(extent: Extent) -> Vec<Plan> {
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
        },
        seconds: Some(seconds),
        ticks: Ticks::calibrate(),
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// What a cell stands for in the table.
fn role(cell: Cell) -> &'static str {
    match cell.case {
        _ if !cell.case.contended() => "low",
        _ if cell.threads > cpus() => "oversubscribed",
        Case::Short => "medium",
        _ => "high",
    }
}

/// Carries out `plans`; rows as those of `bench`, with `family` and `role`.
///
/// # Errors
///
/// If this command can't start processes. A lock that fails has a row that says so.
pub fn rows(plans: &[Plan], progress: &mut Progress) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    for plan in plans {
        let measured = plan.carry_out(progress)?;
        let report = rows::put_together(plan, &measured);
        for (row, mut value) in report.rows.iter().zip(report.values()) {
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
