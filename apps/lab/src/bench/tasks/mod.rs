//! `bench tasks`: the cost of a task that does nothing.
//!
//! | module | does |
//! |---|---|
//! | [`cases`] | cases and conditions |
//! | [`subjects`] | the runtimes, and the cases that each supports |
//! | [`measure`] | one repetition |
//! | [`rows`] | the values of a row, and its columns |

mod cases;
mod measure;
mod rows;
mod subjects;

use std::process::ExitCode;

use clap::Args;

pub use measure::{Order, measure};

use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;

use super::benchmark;
use super::pools::built::{Built, program_of};
use super::repeat::repeat;
use super::rounds::{Measurement, Outcome, Repeated, Rounds};
use super::settings::{Settings, check_seconds};
use crate::named::Cases;
use crate::named::Named as _;
use cases::{Case, Cell};
use measure::Figures;

/// Tasks: measure the cost to spawn, run and join an empty task, and its memory
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. A task spawns the tasks, so that
with one worker no other thread takes part. A ratio is the median of the ratios of paired
repetitions, with its 95 % interval; less is better.

Example:
  antiphon bench tasks --case spawn_join --workers 1,2 --against rayon,smol")]
pub struct Arguments {
    /// Numbers of threads that run tasks
    #[arg(long, value_name = "LIST", default_value = "1,2")]
    workers: Counts,
    /// Our subjects: pool (each task has a handle, and is joined), scope (tasks that borrow, joined
    /// together), fibers (like pool; each task has a stack, and waits without its thread) and, with
    /// the feature migrating, fibers-migrating (a fiber may continue on any thread after a wait)
    #[arg(long, value_name = "LIST", default_value = "pool,scope,fibers")]
    subject: String,
    /// Peers to compare with; ratios are to the first that has the case
    #[arg(long, value_name = "LIST", default_value = "rayon,smol,tokio,go,chili,may,boost")]
    against: String,
    /// Cases: spawn_join (--tasks at once, and batches of 1000), fork_join (Fibonacci numbers, a
    /// task for each call), idle (memory of a task that has not run yet), yield (100 tasks yield in
    /// turn), parked (memory of a waiting task), channel (messages from one task to another, with
    /// room for 128 and for 1), across (the same with two or more workers; the two tasks begin on
    /// different ones) and select (messages of two tasks to a third, each by its own channel)
    #[arg(
        long,
        value_name = "LIST",
        default_value = "spawn_join,fork_join,idle,yield,parked,channel,across,select"
    )]
    case: Cases<Case>,
    /// Number of tasks that exist at once in spawn_join and idle; in parked, at most 20000 of them
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    tasks: usize,
    /// Length of each repetition, in seconds
    #[arg(long, value_name = "S", default_value_t = 0.3, allow_negative_numbers = true)]
    seconds: f64,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    seconds: f64,
    /// The peers that are other programs, or why they are missing.
    built: Vec<(&'static str, Result<Built, String>)>,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments, or a runtime that never ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    benchmark::run(&plan(arguments)?, &arguments.settings)
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let Arguments { workers, subject, against, case, tasks, seconds, settings } = arguments;
    check_seconds(*seconds)?;
    if !(1..=100_000_000).contains(tasks) {
        return Err(Failure::arguments("--tasks takes a number from 1 to 100000000, such as 1000"));
    }
    let (ours, peers) = (subjects::OURS, subjects::PEERS);
    let rounds = settings.rounds("runtime", (subject, ours), (against, peers))?;
    let cells: Vec<_> = settings
        .load
        .iter()
        .flat_map(|&load| {
            case.0.iter().flat_map(move |&case| Cell::of(load, case, &workers.0, *tasks))
        })
        .collect();
    if cells.is_empty() {
        let what = "across takes two workers or more, such as --workers 2";
        return Err(Failure::arguments(what));
    }
    let has_part = |cell: &Cell| rounds.all_subjects().any(|name| subjects::has(name, cell.case));
    if let Some(cell) = cells.iter().find(|cell| !has_part(cell)) {
        let what = format!("none of the runtimes has the case {}", cell.case.name());
        return Err(Failure::arguments(what));
    }
    let mut built = Vec::new();
    for &(name, language, source) in subjects::PROGRAMS {
        if rounds.peers.contains(&name) {
            built.push((name, Built::of("tasks", language, &[source])?));
        }
    }
    Ok(Plan { cells, rounds, seconds: *seconds, built })
}

impl Plan {
    /// Returns the requested subjects that do not support a case, by case.
    fn absent(&self) -> Vec<(Case, Vec<&'static str>)> {
        let mut cases: Vec<_> = self.cells.iter().map(|cell| cell.case).collect();
        cases.dedup();
        let lack = |case| move |name: &&'static str| !subjects::has(name, case);
        let of = |case| (case, self.rounds.all_subjects().filter(lack(case)).collect());
        cases.into_iter().map(of).filter(|(_, names): &(_, Vec<_>)| !names.is_empty()).collect()
    }
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn takes_part(&self, cell: &Cell, subject: &str) -> bool {
        subjects::has(subject, cell.case)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        if let Some(missing) = subjects::lacks(subject, &cell) {
            return Ok(Outcome::Missing(missing));
        }
        let built = self.built.iter().find(|(name, _)| *name == subject);
        let program = match program_of(built.map(|(_, built)| built)) {
            Ok(program) => program,
            Err(missing) => return Ok(Outcome::Missing(missing)),
        };
        let order = Order { subject: subject.to_owned(), cell, seconds: self.seconds, program };
        repeat(&super::Order::Task(order), self.seconds)
    }
}
