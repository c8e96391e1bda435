//! A simulation as a timeline, in the format of recordings.

use antiphon_report::failure::Failure;
use antiphon_trace::{About, Lock, LockKind, Site, Thread, Trace};

use super::experiment::{Measured, Missing, Setting};
use super::sweep::{Cell, Row};

/// Returns the trace of a row, with what each thread did with its locks, and a title.
///
/// # Errors
///
/// If the lock could not make progress, or does not support the case.
pub fn traced(setting: &Setting, row: &Row) -> Result<(String, Trace), Failure> {
    let Cell { subject, case, .. } = row.cell;
    let measured = row.measured.as_ref().map_err(|missing| match missing {
        Missing::Stuck(stuck) => Failure::measured(format!("--trace: {stuck}")),
        Missing::NotHere(why) => {
            Failure::arguments(format!("--trace: {} is not in {}: {why}", subject.name, case.name))
        }
    })?;
    let called = format!("simulated: {}, {}, {}", setting.machine.name, subject.name, case.name);
    Ok((called, of(row.cell, (case.locks)(&setting.machine), measured)))
}

fn of(cell: Cell, locks: usize, measured: &Measured) -> Trace {
    let kind = if cell.subject.shared { LockKind::RwLock } else { LockKind::Mutex };
    let lock = |number| Lock { kind, address: number as u64, process: 0 };
    let site = |number| Site { name: format!("lock {number}"), ..Site::default() };
    let thread = |(number, events): (usize, &Vec<_>)| Thread {
        id: number as u32,
        events: events.clone(),
        ..Thread::default()
    };
    Trace {
        about: About::default(),
        locks: (0..locks).map(lock).collect(),
        sites: (0..locks).map(site).collect(),
        threads: measured.events.iter().enumerate().map(thread).collect(),
        costs: Vec::new(),
        dropped: 0,
        cut_off: false,
    }
}
