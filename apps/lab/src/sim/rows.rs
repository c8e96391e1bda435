//! The results of simulations, as rows.

use super::experiment::{Measured, Missing, Setting, busier_half};
use super::row::{Failed, Figures, Head, NotHere, Outcome, Range, Row, Waits};
use super::sweep::{self, Cell};

/// Combines rows that differ only in their seeds: returns the row with the median of the work done,
/// with the minimum and maximum over all. Of an even number, the lower of the two in the middle. A
/// row without figures is returned instead, if there is one.
///
/// # Panics
///
/// If `rows` is empty.
pub fn of_seeds(setting: &Setting, rows: &[sweep::Row]) -> Row {
    let head = |seeded: &sweep::Row| {
        let Cell { subject, case, threads, seed } = seeded.cell;
        Head {
            model: true,
            machine: setting.machine.name.clone(),
            arbitration: setting.arbitration,
            pages: setting.pages,
            seed,
            subject: subject.name.to_owned(),
            case: case.name.to_owned(),
            threads,
        }
    };
    let row = |seeded, outcome| Row { head: head(seeded), outcome, front: None };
    let mut measured = Vec::new();
    for seeded in rows {
        match &seeded.measured {
            Ok(figures) => measured.push((seeded, figures)),
            Err(Missing::Stuck(stuck)) => {
                return row(seeded, Outcome::Failed(Failed { failed: stuck.to_string() }));
            }
            Err(Missing::NotHere(why)) => {
                return row(seeded, Outcome::NotHere(NotHere { not_here: (*why).to_owned() }));
            }
        }
    }
    let work = |measured: &Measured| {
        measured.outcome.total_operations() as f64 * 1e9 / setting.limit_ns as f64
    };
    measured.sort_by(|(_, one), (_, other)| work(one).total_cmp(&work(other)));
    let (least, most) = (work(measured[0].1), work(measured[measured.len() - 1].1));
    let (seeded, median) = measured[(measured.len() - 1) / 2];
    let range = Range { least, most, seeds: rows.len() };
    let figures = figures(setting, seeded.cell, median, work(median), range);
    row(seeded, Outcome::Figures(Box::new(figures)))
}

fn figures(
    setting: &Setting,
    cell: Cell,
    measured: &Measured,
    ops_per_s: f64,
    ops_per_s_of_seeds: Range,
) -> Figures {
    let Measured { outcome, completed, waits, .. } = measured;
    let counts = &outcome.counts;
    let each = |count: u64| (*completed > 0).then(|| round(count as f64 / *completed as f64));
    let share = |(whole, part): (u64, u64)| (whole > 0).then(|| round(part as f64 / whole as f64));
    let locks = (cell.case.locks)(&setting.machine);
    Figures {
        servers: cell.subject.servers * locks,
        ops_per_s,
        ops_per_s_of_seeds,
        jain: (outcome.total_operations() > 0).then(|| round(outcome.fairness())),
        busier_half: busier_half(&outcome.operations).map(round),
        threads_in_1000: measured.lwss.map(round),
        remote_transfers_per_op: each(counts.remote_transfers),
        local_transfers_per_op: each(counts.local_transfers),
        atomics_per_op: each(counts.owner_atomics + counts.other_atomics),
        cpu_ns_per_op: share((outcome.total_operations(), measured.cpu_ns)),
        stays_on_socket: share(measured.kept),
        handover_ns: share(measured.handovers),
        handovers_with_wake: share((measured.handovers.0, measured.wakes)),
        wait_ns: Waits { p50: waits.p50(), p99: waits.p99() },
        longest_wait_ns: waits.max_ns,
        failed_tries_per_op: each(measured.failed_tries),
        parks: counts.parks,
        wakes: counts.wakes,
        wakes_per_op: each(counts.wakes),
        switches: counts.switches,
        preemptions: counts.preemptions,
        locks,
        lock_bytes: locks * cell.subject.bytes,
        trace: format!("{:016x}", outcome.trace_hash),
    }
}

/// A simulated figure does not deserve more than three decimal places.
fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Returns the number of simulated memory operations of all rows.
pub fn operations(rows: &[sweep::Row]) -> u64 {
    let measured = rows.iter().filter_map(|row| row.measured.as_ref().ok());
    measured
        .map(|measured| {
            let counts = &measured.outcome.counts;
            counts.hits + counts.local_transfers + counts.remote_transfers + counts.memory_reads
        })
        .sum()
}
