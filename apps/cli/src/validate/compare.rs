//! Both worlds, lock by lock: measured, and then predicted.

use antiphon_linux::Linux;
use antiphon_sim::{Machine, Sim};

use super::line::Line;
use super::rows::{Row, THROUGHPUT};
use super::workload::{LOCKS, visit};
use super::{Extent, Setting, native, simulated};
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::stats::median;

/// How often a run is tried at most while the machine is another than the one that was calibrated.
const TRIES: usize = 3;

/// The rows of all locks in these settings. Blocks for as long as `extent` says, and for the
/// simulations.
///
/// # Errors
///
/// If CPUs can't be used; if a lock fails.
pub fn compare(
    machine: &Machine,
    settings: &[Setting],
    extent: Extent,
    places: &[usize],
    mut line: Option<&mut Line>,
    progress: &mut Progress,
) -> Result<Vec<Row>, Failure> {
    let cells =
        || settings.iter().flat_map(|setting| LOCKS.iter().map(move |&lock| (setting, lock)));
    let mut measured = vec![Vec::new(); settings.len() * LOCKS.len()];
    // Repetitions outside: what disturbs the machine for a second disturbs many cells a little.
    for _ in 0..extent.repetitions {
        for (setting, measured) in settings.iter().zip(measured.chunks_mut(LOCKS.len())) {
            // Each time: a CPU is not as fast in one minute as in the next.
            let rates = native::Rates::measure(places, setting.case)?;
            for (&lock, measured) in LOCKS.iter().zip(measured) {
                measured.extend(measure(
                    setting,
                    lock,
                    extent,
                    rates,
                    line.as_deref_mut(),
                    progress,
                )?);
            }
        }
    }
    let mut rows = Vec::new();
    for ((setting, lock), measured) in cells().zip(&measured) {
        let Setting { case, ref places, .. } = *setting;
        progress.step(&format!("simulated, {} threads, {}: {lock}", places.len(), case.name));
        let predicted = predict(machine, setting, extent, lock)?;
        rows.extend(rows_of(setting, lock, measured, &predicted));
    }
    Ok(rows)
}

/// One lock, once; `None` if there was no undisturbed run.
fn measure(
    setting: &Setting,
    lock: &'static str,
    extent: Extent,
    rates: native::Rates,
    line: Option<&mut Line>,
    progress: &mut Progress,
) -> Result<Option<native::Measured>, Failure> {
    let Setting { case, crowded, ref places } = *setting;
    progress.step(&format!("measured, {} threads, {}: {lock}", places.len(), case.name));
    let ns = if crowded { extent.crowded_ns } else { extent.native_ns };
    undisturbed(line.filter(|_| places.len() > 1), || {
        let run = native::Run { rates, places, case, ns, crowded };
        visit::<Linux, _>(lock, run).expect("it has a name")
    })
}

/// A run before and after which a line costs what was told; `None` if there is none.
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

/// The predictions by seed.
fn predict(
    machine: &Machine,
    setting: &Setting,
    extent: Extent,
    lock: &str,
) -> Result<Vec<simulated::Predicted>, Failure> {
    let Setting { case, crowded, ref places } = *setting;
    let ns = if crowded { extent.crowded_simulated_ns } else { extent.simulated_ns };
    let of = |seed| {
        let run = simulated::Run { machine, places, case, ns, crowded, seed };
        visit::<Sim, _>(lock, run).expect("it has a name")
    };
    (1..=extent.seeds).map(of).collect()
}

fn rows_of(
    setting: &Setting,
    subject: &'static str,
    measured: &[native::Measured],
    predicted: &[simulated::Predicted],
) -> Vec<Row> {
    let Setting { case, ref places, crowded } = *setting;
    let row = |metric, of: &dyn Fn(&native::Measured) -> [f64; 3], predicted: f64| {
        let all: Vec<_> = measured.iter().map(of).collect();
        let nth = |n: usize| median(all.iter().map(|quartiles| quartiles[n]).collect());
        let measured = (|| Some([nth(0)?, nth(1)?, nth(2)?]))();
        Row { case, threads: places.len(), subject, metric, measured, predicted }
    };
    let mean = |of: fn(&simulated::Predicted) -> f64| {
        predicted.iter().map(of).sum::<f64>() / predicted.len() as f64
    };
    let rounds = |one: &native::Measured| {
        let figure = one.rounds_per_s;
        [figure.median, figure.p25, figure.p75]
    };
    let mut rows = vec![row(THROUGHPUT, &rounds, mean(|one| one.rounds_per_s))];
    if crowded {
        rows.push(row("hand_over_ns", &|one| [one.hand_over_ns; 3], mean(|one| one.hand_over_ns)));
        let switches = |one: &native::Measured| [one.switches_per_1000; 3];
        rows.push(row("switches_per_kop", &switches, mean(|one| one.switches_per_1000)));
    }
    rows
}
