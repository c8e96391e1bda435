//! `bench clock`: the cost of a timestamp, and whether stamps keep their order across CPUs.
//!
//! | module | does |
//! |---|---|
//! | [`measure`] | one repetition of one subject, with each thread on a CPU |
//! | [`rows`] | the values of a row, and its columns |
//! | [`check`] | threads that pass stamps on, and detect a stamp from the future |

mod check;
mod measure;
mod rows;

use std::fmt;
use std::process::ExitCode;

use antiphon_clock::Clock;
use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;
use antiphon_report::table::count;
use antiphon_report::words::several;
use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::benchmark;
use super::neighbours::Load;
use super::rounds::{self, Measurement, Repeated, Rounds};
use super::settings::Settings;
use crate::clocks::{SUBJECTS, Subject};
use crate::every::every;
use measure::Figures;

/// Timestamps: measure a shared counter, the CPU's counter, the kernel's clock and Ordo, and
/// transactions that are ordered by them
#[derive(Args)]
#[command(after_help = "\
Subjects take turns in random order, repetition by repetition, with each thread pinned to a CPU; the
first repetition is discarded. A ratio is the median of the ratios of paired repetitions: to shared,
and for transactions to tl2-shared. docs/clock.md says what the subjects do.

With --check, threads on all CPUs pass stamps to each other, and no stamp may be certainly later
than a stamp that another thread takes after it has read the first.

Example:
  antiphon bench clock --threads 1,2
  antiphon bench clock --check 3600")]
pub struct Arguments {
    /// Numbers of threads that take stamps
    #[arg(long, value_name = "LIST", default_value = "1,2")]
    threads: Counts,
    /// Subjects: shared, counter, clock, ordo, ordo-new, tl2-shared, tl2-ordo, or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    subject: String,
    /// Length of each repetition, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.05, allow_negative_numbers = true)]
    seconds: f64,
    /// Measure nothing, but check the order of stamps for this many seconds
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        conflicts_with_all = ["threads", "subject", "seconds", "load", "repetitions", "seed"]
    )]
    check: Option<f64>,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    seconds: f64,
    clock: Clock,
}

/// The conditions of a measurement.
#[derive(Clone, Copy, PartialEq, Serialize)]
struct Cell {
    /// The other load on the machine.
    load: Load,
    /// Number of threads that take stamps.
    threads: usize,
}

/// Measures or checks, and prints.
///
/// # Errors
///
/// Bad arguments; a clock that can't be measured here; stamps in the wrong order, or transactions
/// that have lost updates.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let seconds = arguments.check.unwrap_or(arguments.seconds);
    if !(0.001..=100_000.0).contains(&seconds) {
        let wanted = "--seconds and --check take a time from 0.001 to 100000, such as 0.05";
        return Err(Failure::arguments(wanted));
    }
    let clock = Clock::measure().map_err(Failure::missing)?;
    match arguments.check {
        Some(seconds) => check::run(&clock, seconds, arguments.settings.json),
        None => benchmark::run(&plan(clock, arguments)?, &arguments.settings),
    }
}

fn plan(clock: Clock, arguments: &Arguments) -> Result<Plan, Failure> {
    let Arguments { threads, subject, seconds, settings, .. } = arguments;
    let known = SUBJECTS.map(|subject| subject.name);
    let all = known.join(",");
    let subject = if subject == "all" { &all } else { subject };
    let rounds = settings.rounds("subject", (subject, &known), ("", &[]))?;
    let cells = every!(
        load in &settings.load, threads in &threads.0 => Cell { load, threads }
    );
    Ok(Plan { cells, rounds, seconds: *seconds, clock })
}

/// Returns the name of the subject that this one is compared with.
fn reference(subject: &str) -> &'static str {
    of_name(subject).map_or("", |subject| subject.reference)
}

fn of_name(name: &str) -> Option<Subject> {
    SUBJECTS.into_iter().find(|subject| subject.name == name)
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, load {}", several(self.threads as u64, "thread"), self.load)
    }
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        let subject = of_name(subject).ok_or("it is not known")?;
        measure::repetition(&self.clock, subject, cell.threads, self.seconds)
    }
}

/// The clock that was measured, for scripts.
fn described(clock: &Clock) -> serde_json::Value {
    json!({
        "source": clock.source().to_string(), "cpus": clock.cpus(),
        "uncertainty_ns": clock.uncertainty_ns(),
    })
}

/// The clock in words, for people.
fn heading(clock: &Clock) -> String {
    format!(
        "Ordo: uncertain within {} ns, on {} CPUs, by {}",
        count(clock.uncertainty_ns()),
        clock.cpus(),
        clock.source()
    )
}
