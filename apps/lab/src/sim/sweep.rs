//! Simulates many rows, on all CPUs of the host. Simulations share nothing, so the rows do not
//! depend on how many run at a time.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use antiphon_replay::locks::SimLock;
use antiphon_report::progress::Progress;
use antiphon_report::words::several;

use super::cases::Case;
use super::experiment::{self, Measured, Missing, Setting};

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
    let workers = thread::available_parallelism().map_or(1, usize::from).min(cells.len());
    let (next, progress) = (AtomicUsize::new(0), Mutex::new(Progress::new(cells.len())));
    let work = || {
        let mut mine = Vec::new();
        // Relaxed: each number is handed out once, and publishes no other data. Cells are taken
        // from the end, where those with many threads are, because these take the longest.
        while let Some(place) = cells.len().checked_sub(1 + next.fetch_add(1, Relaxed)) {
            let cell = cells[place];
            let what = format!(
                "{}, {}: {}",
                cell.case.name,
                several(cell.threads as u64, "thread"),
                cell.subject.name
            );
            progress.lock().unwrap_or_else(PoisonError::into_inner).step(&what);
            let Cell { subject, case, threads, seed } = cell;
            let setting = Setting { seed, ..setting.clone() };
            let measured = experiment::carry_out(&setting, subject, case, threads);
            mine.push((place, Row { cell, measured }));
        }
        mine
    };
    let mut rows: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|rows| rows.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}
