//! Simulates many rows, on all CPUs of the host. Simulations share nothing, so the rows do not
//! depend on how many run at a time.

use std::sync::{Mutex, PoisonError};

use antiphon_replay::locks::SimLock;
use antiphon_report::progress::Progress;
use antiphon_report::words::several;

use super::cases::Case;
use super::experiment::{self, Measured, Missing, Setting};
use crate::all_cpus::on_all;

/// The parameters of a row.
#[derive(Clone, Copy)]
pub struct Cell {
    pub subject: &'static SimLock,
    pub case: &'static Case,
    pub threads: usize,
    pub seed: u64,
}

/// A simulated row.
pub struct Row {
    pub cell: Cell,
    pub measured: Result<Measured, Missing>,
}

/// Returns a row for each cell, in order.
///
/// # Panics
///
/// As [`experiment::carry_out`].
pub fn rows(setting: &Setting, cells: &[Cell]) -> Vec<Row> {
    let progress = Mutex::new(Progress::new(cells.len()));
    // Those with many threads are at the end, and take the longest.
    let last_first: Vec<_> = cells.iter().rev().copied().collect();
    let mut rows = on_all(&last_first, |&cell| {
        let Cell { subject, case, threads, seed } = cell;
        let what =
            format!("{}, {}: {}", case.name, several(threads as u64, "thread"), subject.name);
        progress.lock().unwrap_or_else(PoisonError::into_inner).step(&what);
        let setting = Setting { seed, ..setting.clone() };
        Row { cell, measured: experiment::carry_out(&setting, subject, case, threads) }
    });
    rows.reverse();
    rows
}
