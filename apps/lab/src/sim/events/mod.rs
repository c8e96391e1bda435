//! `sim events`: the time and cost of notifying threads on simulated machines.
//!
//! | module | has |
//! |---|---|
//! | [`cases`] | which threads are notified: one by one, or all at once |
//! | [`subjects`] | the mechanisms, and the machine that each needs |
//! | [`wakes`] | how a waiter waits and is notified: our mechanisms, by their own code |
//! | [`interrupts`] | the same where the program is the kernel |
//! | [`bare_metal`], [`paths`] | the same on our bare-metal kernel, by the lengths of its paths |
//! | [`experiment`] | rounds of one mechanism |
//! | [`rows`], [`tables`], [`page`] | the results, for scripts and for people |
//! | [`parts`] | what each part of the cost contributes |
//! | [`figures`] | the figures of the Nemo paper, drawn again |

mod bare_metal;
mod cases;
#[cfg(test)]
mod claims;
mod experiment;
pub mod figures;
mod interrupts;
mod page;
mod parts;
pub mod paths;
mod rows;
#[cfg(test)]
mod shapes;
mod subjects;
mod tables;
mod wakes;

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Counts;
use antiphon_report::machine;
use antiphon_report::progress::Progress;
use antiphon_report::table::colour_stdout;
use antiphon_report::words::several;
use antiphon_sim::{Delivery, Machine};
use clap::Args;
use serde_json::json;

use self::cases::{Case, Cases};
use self::experiment::Setting;
use self::figures::Conditions;
use self::parts::Parts;
use self::rows::Row;
use self::subjects::Subject;
use super::report::{body, heading, joined, print};
use crate::every::every;

/// Wake-ups: simulate our mechanisms and a kernel's interrupts, with the latency by the notified
/// CPU, the spread of a broadcast and the sender's cost
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. The code
of the events is the one that runs on Linux. Subjects whose names begin with kernel, ipi and message
belong to a program that is itself the kernel; those that begin with metal run on the paths of our
bare-metal kernel. docs/events.md says what the subjects do, and has the
figures beside published ones.

Example:
  antiphon sim events --machine opteron-64c
  antiphon sim events --machine nemo-64c --delivery kernel,remote-syscall --case unicast
  antiphon sim events --figures --html figures.html
  antiphon sim events --machine nemo-64c --case unicast --parts
  antiphon sim events --machine phi-228t --case broadcast --subject condvar,ipi --json")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "opteron-64c")]
    machine: String,
    /// Numbers of threads, each on its own CPU, of which one notifies the others [default: all
    /// CPUs]
    #[arg(long, value_name = "LIST")]
    threads: Option<Counts>,
    /// Cases: unicast, broadcast, or broadcast-N (to N waiters, whatever --threads says)
    #[arg(long, value_name = "LIST", default_value = "unicast,broadcast")]
    case: Cases,
    /// Mechanisms, or all for which the machine's file has costs
    #[arg(long, value_name = "LIST", default_value = "all")]
    subject: String,
    /// Ways in which interrupts enter their handlers: kernel, remote-syscall, fred, uintr, signal,
    /// or all
    #[arg(long, value_name = "LIST", default_value = "kernel")]
    delivery: String,
    /// Simulate all figures of the Nemo paper, on nemo-64c and nemo-228t, and compare them
    #[arg(long, conflicts_with_all = ["machine", "threads", "case", "subject", "delivery"])]
    figures: bool,
    /// Print what each part of the costs contributes to the mean: interrupts, lines, calls, …
    #[arg(long, conflicts_with_all = ["html", "figures"])]
    parts: bool,
    /// Number of notifications of each waiter
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Time for which waiters wait before a notification, in microseconds
    #[arg(long, value_name = "N", default_value_t = 400,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    gap_us: u32,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also write the distributions to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Simulates, and prints the results.
///
/// # Errors
///
/// Bad arguments; waiters that are never woken, which is a defect; if a file or stdout can't be
/// written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { rounds, gap_us, seed, .. } = *arguments;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let gap_ns = u64::from(gap_us) * 1_000;
    if arguments.figures {
        return figures::run(Conditions { seed, rounds, gap_ns }, html, arguments.json);
    }
    let described = machine::named(&arguments.machine)?.described;
    let machine = &described.machine;
    let subjects = subjects::named(&arguments.subject, machine)?;
    let deliveries = subjects::deliveries(&arguments.delivery, machine)?;
    let threads = threads(arguments.threads.as_ref(), machine)?;
    let cases = arguments.case.on(machine, &threads).map_err(Failure::arguments)?;
    let setting = Setting { machine, seed, rounds, gap_ns };
    let rows = simulated(&setting, &cases, &subjects, &deliveries)?;
    let words = format!("{}, {gap_us} µs apart, seed {seed}", several(rounds.into(), "round"));
    let heading = heading(machine, &words);
    let conditions = json!({ "seed": seed, "rounds": rounds, "gap_us": gap_us });
    if arguments.parts {
        let parts = |row| Parts::of(&setting, &row).map(|parts| (row, parts));
        let rows = rows.into_iter().map(parts).collect::<Result<Vec<_>, _>>()?;
        let object = |(row, parts): &(Row, Parts)| {
            joined(row.object(machine), json!({ "parts_ns": parts.object(row.latency.mean) }))
        };
        return print(
            arguments.json,
            (None, String::new),
            || body(&described, conditions, rows.iter().map(object).collect()),
            || format!("{heading}\n\n{}", parts::text(&rows, colour_stdout())),
        );
    }
    print(
        arguments.json,
        (html, || page::page(&heading, &rows)),
        || body(&described, conditions, rows.iter().map(|row| row.object(machine)).collect()),
        || format!("{heading}\n\n{}", tables::text(&rows, colour_stdout())),
    )
}

fn simulated(
    setting: &Setting<'_>,
    cases: &[Case],
    subjects: &[&'static Subject],
    deliveries: &[Delivery],
) -> Result<Vec<Row>, Failure> {
    let mut progress = Progress::new(cases.len() * subjects.len());
    let mut rows = Vec::new();
    for (case, subject) in every!(case in cases, subject in subjects => (case, subject)) {
        let differing = if subject.system.interrupts() { deliveries } else { &[Delivery::Kernel] };
        for &delivery in differing.iter().filter(|_| subject.is_in(case)) {
            rows.push(Row::of(setting, subject, case, delivery)?);
        }
        progress.step(&format!("{case}: {}", subject.name));
    }
    Ok(rows)
}

fn threads(asked: Option<&Counts>, machine: &Machine) -> Result<Vec<usize>, Failure> {
    let cpus = machine.cores() as usize;
    let threads = asked.map_or_else(|| vec![cpus], |Counts(threads)| threads.clone());
    match threads.iter().find(|count| !(2..=cpus).contains(count)) {
        Some(count) => Err(Failure::arguments(format!(
            "--threads {count}: {} has {cpus} CPUs, one thread each: from 2 to {cpus}",
            machine.name
        ))),
        None => Ok(threads),
    }
}
