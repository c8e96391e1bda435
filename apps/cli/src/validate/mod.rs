//! `validate`: the same locks under the same workload, on this machine and simulated.
//!
//! | module | has |
//! |---|---|
//! | [`workload`] | what the threads of both do, generic over where they do it |
//! | [`native`] | threads of this machine |
//! | [`line`] | whether the machine is still the one that was calibrated |
//! | [`marks`] | what these note, and what is read off it |
//! | [`simulated`] | threads of a simulated one |
//! | [`rows`] | measured beside predicted |

mod line;
mod marks;
mod native;
mod rows;
mod simulated;
mod workload;

use std::process::ExitCode;

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;
use antiphon_sim::{Machine, Sim};
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::table::{Cell, Table, Tone, colour_stdout, si};
use crate::output::{report, say};
use crate::pinned::usable;
use crate::sim::{calibrate, find};
use crate::stats::median;
use line::Line;
use rows::{Mean, Row, THROUGHPUT, means};
use workload::{CASES, Case, LOCKS, SHORT, visit};

/// Measured against predicted: how far the simulator is from this machine
#[derive(Args)]
#[command(after_help = "\
One and two pinned threads, and two on each of two CPUs. Before that, this machine's latencies are
measured as by `antiphon sim calibrate`: they are all that the simulator is told.

Example:
  antiphon validate --quick
  antiphon validate --machine mine.toml --json")]
pub struct Arguments {
    /// Predict for this machine instead of calibrating one: a name, or the path of a file
    #[arg(long, value_name = "M")]
    machine: Option<String>,
    /// Measure for a few seconds only
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// How long things are looked at.
#[derive(Clone, Copy)]
struct Extent {
    repetitions: usize,
    native_ns: f64,
    crowded_ns: f64,
    simulated_ns: u64,
    crowded_simulated_ns: u64,
    seeds: u64,
}

/// What is not counted at the beginning where threads outnumber CPUs, in either world: until all
/// have run, they don't.
const CROWDED_WARM_UP_NS: u64 = 30_000_000;

const QUICK: Extent = Extent {
    repetitions: 1,
    native_ns: 3e7,
    crowded_ns: 1e8,
    simulated_ns: 200_000,
    crowded_simulated_ns: 20_000_000,
    seeds: 1,
};
const FULL: Extent = Extent {
    repetitions: 5,
    native_ns: 6e7,
    crowded_ns: 3e8,
    simulated_ns: 2_000_000,
    crowded_simulated_ns: 100_000_000,
    seeds: 3,
};

/// How often a run is tried at most while the machine is another than the one that was calibrated.
const TRIES: usize = 3;

/// Some threads on some CPUs.
#[derive(Clone)]
struct Setting {
    case: Case,
    places: Vec<usize>,
    crowded: bool,
}

/// Measures, predicts and prints.
///
/// # Errors
///
/// If there is no such machine; if CPUs can't be used; if a lock fails.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let places = usable();
    let extent = if arguments.quick { QUICK } else { FULL };
    let settings = settings(&places);
    let steps = settings.len() * LOCKS.len() * (extent.repetitions + 1);
    let (described, noisy) = match &arguments.machine {
        Some(name) => (find::machine(name)?.described, false),
        None => {
            let calibrated = calibrate::calibrate(arguments.quick)?;
            (calibrated.described()?, calibrated.is_noisy())
        }
    };
    let mut line = Line::of(&described, &places)?;
    // The locks here unlock as this process has it.
    let machine = Machine { light: Linux::light(), ..described.machine };
    if let Some(&place) = places.iter().take(2).find(|&&place| place >= machine.cores() as usize) {
        let (name, cpus) = (&machine.name, machine.cores());
        let what = format!("{name} has {cpus} CPUs, too few for CPU {place}: --machine host");
        return Err(Failure::arguments(what));
    }
    let mut progress = Progress::new(steps);
    let rows = compare(&machine, &settings, extent, &places, line.as_mut(), &mut progress)?;
    let moved = line.map_or(0, |line| line.moved);
    drop(progress);
    let means = means(&rows);
    let unmeasured = rows.iter().filter(|row| row.measured.is_none()).count();
    let skipped: &[&str] =
        if places.len() < 2 { &["all with two CPUs: only one may be used"] } else { &[] };
    if arguments.json {
        report::print(json!({
            "model": machine.name, "noisy": noisy, "skipped": skipped, "moved": moved,
            "rows": rows.iter().map(Row::object).collect::<Vec<_>>(),
            "means": means.iter().map(Mean::object).collect::<Vec<_>>(),
        }))?;
    } else {
        say(&text(&machine.name, &rows, &means, colour_stdout()))?;
        if noisy {
            say("This machine was not quiet while its latencies were measured.\n")?;
        }
        if unmeasured > 0 {
            say(&format!("{unmeasured} rows were not measured: CPUs were lost all the time.\n"))?;
        }
        if moved > 0 {
            let what = "a line cost otherwise than calibrated, as if the host had moved a CPU";
            say(&format!("{moved} runs were dropped: {what}.\n"))?;
        }
        for what in skipped {
            say(&format!("Skipped: {what}.\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(places: &[usize]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for count in 1..=places.len().min(2) {
        for case in CASES {
            settings.push(Setting { case, places: places[..count].to_vec(), crowded: false });
        }
    }
    if let &[one, other, ..] = places {
        let places = vec![one, other, one, other];
        settings.push(Setting { case: SHORT, places, crowded: true });
    }
    settings
}

fn compare(
    machine: &Machine,
    settings: &[Setting],
    extent: Extent,
    places: &[usize],
    mut line: Option<&mut Line>,
    progress: &mut Progress,
) -> Result<Vec<Row>, Failure> {
    let rates = native::Rates::measure(places)?;
    let cells =
        || settings.iter().flat_map(|setting| LOCKS.iter().map(move |&lock| (setting, lock)));
    let mut measured = vec![Vec::new(); settings.len() * LOCKS.len()];
    // Repetitions outside: what disturbs the machine for a second disturbs many cells a little.
    for _ in 0..extent.repetitions {
        for ((setting, lock), measured) in cells().zip(&mut measured) {
            let Setting { case, crowded, ref places } = *setting;
            progress.step(&format!("measured, {} threads, {}: {lock}", places.len(), case.name));
            let ns = if crowded { extent.crowded_ns } else { extent.native_ns };
            let line = line.as_deref_mut().filter(|_| places.len() > 1);
            measured.extend(undisturbed(line, || {
                let run = native::Run { rates, places, case, ns, crowded };
                visit::<Linux, _>(lock, run).expect("it has a name")
            })?);
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

fn text(machine: &str, rows: &[Row], means: &[Mean], colour: bool) -> String {
    format!(
        "{}\nGeometric means over locks. Predictions are of the simulated machine {machine}.\n\n{}",
        table(rows).render(colour),
        summary(means).render(colour)
    )
}

const NOTHING: &str = "–";

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "case",
        ">threads",
        "lock",
        "figure",
        ">measured",
        ">quartiles",
        ">predicted",
        ">error",
    ]);
    let percent = |ratio: f64| format!("{:+.0} %", (ratio - 1.0) * 100.0);
    let quartiles = |[_, low, high]: [f64; 3]| format!("{} to {}", si(low), si(high));
    for row in rows {
        table.row(vec![
            Cell::text(row.case.name),
            Cell::number(row.threads.to_string()),
            Cell::text(row.subject),
            Cell::text(row.metric),
            Cell::number(row.measured.map_or(NOTHING.to_owned(), |[median, ..]| si(median))),
            Cell::number(row.measured.map_or(String::new(), quartiles)).tone(Tone::Faint),
            Cell::number(si(row.predicted)),
            Cell::number(row.ratio().map_or(NOTHING.to_owned(), percent)),
        ]);
    }
    table
}

fn summary(means: &[Mean]) -> Table {
    let mut table = Table::new(&[
        "case",
        ">threads",
        "figure",
        ">locks",
        ">predicted / measured",
        ">least",
        ">most",
        "band",
    ]);
    let number = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |v| format!("{v:.2}"));
    for mean in means {
        let (word, tone) = match mean.holds() {
            Some(true) => ("holds", Tone::Good),
            Some(false) => ("missed", Tone::Bad),
            None => ("not measured", Tone::Plain),
        };
        let band = mean.band.map(|band| format!("±{:.0} %: {word}", band * 100.0));
        table.row(vec![
            Cell::text(mean.case),
            Cell::number(mean.threads.to_string()),
            Cell::text(mean.metric),
            Cell::number(mean.rows.to_string()),
            Cell::number(number(mean.ratio)),
            Cell::number(number(mean.range.map(|range| range.0))),
            Cell::number(number(mean.range.map(|range| range.1))),
            Cell::text(band.unwrap_or_default()).tone(tone),
        ]);
    }
    table
}
