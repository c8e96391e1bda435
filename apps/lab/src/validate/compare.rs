//! Both worlds, lock by lock: everything is measured first, then predicted.
//!
//! Each has a part of the time. In the measurement, repetitions are the outer loop, so that a
//! disturbance of a second affects many cells a little. Simulations share nothing, so they run on
//! all CPUs; those with few threads, which take the least time, are first.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_sim::{Machine, Sim};

use super::budget::Budget;
use super::line::Line;
use super::peer::{GLIBC, Glibc};
use super::settings::{Extent, Setting};
use super::workload::{LOCKS, Visitor as _, visit};
use super::{native, simulated};
use crate::all_cpus::on_all;

/// Maximal number of attempts at a run while the machine differs from the calibrated one.
const TRIES: usize = 3;
/// Part of the time in which another repetition must fit.
const REPETITIONS: f64 = 0.5;
/// Part of the time in which the first repetition must fit.
const FIRST: f64 = 0.7;

/// A lock in a setting, with its results in both worlds.
pub struct Cell {
    /// The work of its threads, and their CPUs.
    pub setting: Setting,
    /// The lock.
    pub lock: &'static str,
    /// Measurements by repetition; `None` for a disturbed one.
    pub measured: Vec<Option<native::Measured>>,
    /// Predictions by seed.
    pub predicted: Vec<simulated::Predicted>,
    /// How the lock failed.
    pub trouble: Option<String>,
}

/// Makes the cells of these settings: those of a setting are adjacent, with the C library's mutex
/// last.
pub fn cells(settings: &[Setting]) -> Vec<Cell> {
    let cell = |setting: &Setting, lock| Cell {
        setting: setting.clone(),
        lock,
        measured: Vec::new(),
        predicted: Vec::new(),
        trouble: None,
    };
    let of = |setting| LOCKS.iter().copied().chain([GLIBC]).map(move |lock| cell(setting, lock));
    settings.iter().flat_map(of).collect()
}

/// Returns the cells of each setting.
pub fn by_setting(cells: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    cells.chunks(LOCKS.len() + 1)
}

/// Measures all cells, as often as there is time. Blocks meanwhile. Returns the number of complete
/// repetitions.
///
/// # Errors
///
/// If CPUs can't be used, so that nothing was measured.
pub fn measure(
    cells: &mut [Cell],
    extent: Extent,
    mut line: Option<&mut Line>,
    budget: Budget,
    progress: &mut Progress,
) -> Result<usize, Failure> {
    let (mut failure, mut took, mut whole) = (None, Duration::ZERO, 0);
    'repetitions: while whole < extent.repetitions {
        let begun = Instant::now();
        if whole > 0 && !budget.has_room(REPETITIONS, took) {
            break;
        }
        for of_setting in cells.chunks_mut(LOCKS.len() + 1) {
            // Measured each time, because the speed of a CPU varies from one minute to the next.
            let Setting { case, ref places, .. } = of_setting[0].setting;
            let rates = native::Rates::measure(places, case);
            for cell in of_setting {
                if budget.is_spent(FIRST) {
                    break 'repetitions;
                }
                let threads = cell.setting.places.len();
                progress
                    .step(&format!("measured, {threads} threads, {}: {}", case.name, cell.lock));
                match &rates {
                    Ok(rates) => cell.measure(extent, *rates, line.as_deref_mut()),
                    Err(_) => cell.measured.push(None),
                }
            }
            failure = rates.err().or(failure);
        }
        (took, whole) = (begun.elapsed(), whole + 1);
    }
    let nothing = || cells.iter().all(|cell| cell.measured.iter().all(Option::is_none));
    match failure {
        Some(failure) if nothing() => Err(failure),
        _ => Ok(whole),
    }
}

/// Predicts all cells, with as many seeds as there is time for. Blocks meanwhile.
pub fn predict(
    cells: &mut [Cell],
    machine: &Machine,
    extent: Extent,
    budget: Budget,
    progress: &mut Progress,
) {
    let here = |cell: &&Cell| cell.lock != GLIBC && cell.trouble.is_none();
    let places: Vec<_> =
        cells.iter().enumerate().filter(|(_, cell)| here(cell)).map(|(place, _)| place).collect();
    let jobs: Vec<_> = (1..=extent.seeds)
        .flat_map(|seed| places.iter().map(move |&place| (seed, place)))
        .collect();
    let progress = Mutex::new(progress);
    let all = &*cells;
    let predicted = on_all(&jobs, |&(seed, place)| {
        if budget.is_spent(1.0) {
            return Ok(None);
        }
        let Cell { setting, lock, .. } = &all[place];
        let (threads, case) = (setting.places.len(), setting.case.name);
        let what = format!("simulated, {threads} threads, {case}: {lock}");
        progress.lock().unwrap_or_else(PoisonError::into_inner).step(&what);
        all[place].predict(machine, extent, seed, budget)
    });
    for ((_, place), predicted) in jobs.into_iter().zip(predicted) {
        match predicted {
            Ok(predicted) => cells[place].predicted.extend(predicted),
            Err(failure) => cells[place].trouble = Some(failure.into_message()),
        }
    }
}

impl Cell {
    /// Measures the cell once.
    fn measure(&mut self, extent: Extent, rates: native::Rates, line: Option<&mut Line>) {
        if self.trouble.is_some() {
            return;
        }
        let Setting { case, crowded, ref places } = self.setting;
        let ns = if crowded { extent.crowded_ns } else { extent.native_ns };
        let measured = undisturbed(line.filter(|_| places.len() > 1), || {
            let run = native::Run { rates, places, case, ns, crowded };
            match self.lock {
                GLIBC => run.visit::<Glibc>(),
                lock => visit::<Linux, _>(lock, run).expect("it has a name"),
            }
        });
        match measured {
            Ok(measured) => self.measured.push(measured),
            Err(failure) => self.trouble = Some(failure.into_message()),
        }
    }

    /// Returns the prediction with one seed; `None` if there was no time.
    fn predict(
        &self,
        machine: &Machine,
        extent: Extent,
        seed: u64,
        budget: Budget,
    ) -> Result<Option<simulated::Predicted>, Failure> {
        let Setting { case, crowded, ref places } = self.setting;
        let ns = if crowded { extent.crowded_simulated_ns } else { extent.simulated_ns };
        let run = simulated::Run { machine, places, case, ns, crowded, seed, budget };
        visit::<Sim, _>(self.lock, run).expect("it has a name")
    }
}

/// Returns a run before and after which a line costs what the machine's description says; `None` if
/// there was none.
fn undisturbed(
    line: Option<&mut Line>,
    run: impl Fn() -> Result<Option<native::Measured>, Failure>,
) -> Result<Option<native::Measured>, Failure> {
    let Some(line) = line else { return run() };
    for _ in 0..TRIES {
        let before = line.is_as_told()?;
        let measured = if before { run()? } else { None };
        if before && line.is_as_told()? {
            return Ok(measured);
        }
        line.moved += 1;
    }
    Ok(None)
}
