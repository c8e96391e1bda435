//! `validate`: the same locks under the same workload, on this machine and simulated.
//!
//! | module | has |
//! |---|---|
//! | [`workload`] | what the threads of both do, generic over where they do it |
//! | [`native`] | threads of this machine |
//! | [`compare`] | both worlds, lock by lock |
//! | [`line`] | whether the machine is still the one that was calibrated |
//! | [`marks`] | what these note, and what is read off it |
//! | [`simulated`] | threads of a simulated one |
//! | [`rows`] | measured beside predicted |

mod compare;
mod line;
mod marks;
mod native;
mod rows;
mod simulated;
mod workload;

use std::process::ExitCode;

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;
use antiphon_sim::Machine;
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::table::{Cell, Table, Tone, colour_stdout, si};
use crate::output::{report, say};
use crate::pinned::usable;
use crate::sim::{calibrate, find};
use compare::compare;
use line::Line;
use rows::{Mean, Row, means};
use workload::{CASES, Case, LOCKS, SHORT};

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
