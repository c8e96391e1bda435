//! `sim tasks`: the packet workloads of the schedulers' dissertation on simulated machines.
//!
//! | module | has |
//! |---|---|
//! | [`cases`] | which tasks are made ready, by which thread, and what they cost |
//! | [`subjects`] | the policies, in our form and as published |
//! | [`team`] | our pool's registry, as the experiment uses it, with counts of thieves' work |
//! | [`published`] | the dissertation's scheduler, with its defects |
//! | [`experiment`] | one subject in one case |
//! | [`ready`] | its ready tasks, by the numbers that are queued |
//! | [`figures`] | the dissertation's measurements |
//! | [`rows`], [`tables`], [`page`] | the results, for scripts and for people |

pub mod cases;
pub mod experiment;
pub mod figures;
mod page;
mod published;
mod ready;
pub mod rows;
#[cfg(test)]
mod shapes;
pub mod subjects;
mod tables;
mod team;

use std::path::PathBuf;
use std::process::ExitCode;

use antiphon_report::doubt;
use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Counts;
use antiphon_report::machine;
use antiphon_report::progress::Progress;
use antiphon_report::table::colour_stdout;
use antiphon_report::words::several;
use antiphon_sim::Machine;
use clap::Args;
use serde_json::json;

use self::cases::{CASES, COSTS, Case, Costs};
use self::experiment::Setting;
use self::rows::Row;
use self::subjects::{Form, Named, Subject};
use super::report::{body, chosen, heading, print};
use crate::every::every;

/// Task schedulers: simulate the packets of a dissertation with our scheduler and with its own;
/// shows packets per second, latency, steals and the cache lines that move
#[derive(Args)]
#[command(after_help = "\
Every figure is simulated: a prediction of the model for that machine, not a measurement. Our
scheduler, its policies and its queues are the code that runs on Linux. docs/tasks.md describes the
cases and subjects, and has the figures beside published ones.

Example:
  antiphon sim tasks --threads 20,115
  antiphon sim tasks --case large --tasks 100000 --subject lifo --form ours --json")]
pub struct Arguments {
    /// Simulated machine: a name from `antiphon sim machines`, host (this machine), or the path of
    /// a file
    #[arg(long, value_name = "M", default_value = "epyc-2x64c")]
    machine: String,
    /// Numbers of workers, each on its own CPU [default: those of 5,20,40,80,115 for which the
    /// machine has CPUs]
    #[arg(long, value_name = "LIST")]
    threads: Option<Counts>,
    /// Cases: general, large, heavy, spawners, cache, bimodal, one-bimodal, options
    #[arg(long, value_name = "LIST", default_value = "general")]
    case: String,
    /// Policies to simulate, or all
    #[arg(long, value_name = "LIST", default_value = "fifo,lifo")]
    subject: String,
    /// Scheduler to simulate; the published one has fifo, lifo, and both with -near-13 and -near-20
    /// [default: both]
    #[arg(long)]
    form: Option<Form>,
    /// Costs of the work on packets: ocaml, as in the dissertation, or rust
    #[arg(long, value_name = "NAME", default_value = "ocaml")]
    costs: String,
    /// Number of packets; docs/tasks.md has the number of each case in the dissertation
    #[arg(long, value_name = "N", default_value_t = 5_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    tasks: u32,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also write curves to FILE as a page for a browser
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
/// Bad arguments; workers that deadlock, which is a defect; if a file or stdout can't be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Arguments { tasks, seed, .. } = *arguments;
    let described = machine::named(&arguments.machine)?.described;
    let machine = &described.machine;
    let cases = chosen("case", &arguments.case, &CASES.each_ref(), (|case| case.name, false))?;
    let costs = costs(&arguments.costs)?;
    let Named { subjects, left_out } =
        subjects::named(&arguments.subject, arguments.form).map_err(Failure::arguments)?;
    let threads = threads(arguments.threads.as_ref(), machine)?;
    let setting = Setting { machine, costs, seed, packets: tasks, workers: 0 };
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        doubt(&format!("left out, as the dissertation's scheduler has no such policy: {names}"));
    }
    let rows = simulated(setting, &cases, &subjects, &threads)?;
    let (packets, name) = (several(tasks.into(), "packet"), costs.name);
    let heading = heading(machine, &format!("{packets}, costs of {name}, seed {seed}"));
    let objects = || rows.iter().map(|row| row.object(machine)).collect();
    print(
        arguments.json,
        (html, || page::page(&heading, &rows)),
        || body(&described, json!({ "seed": seed, "packets": tasks, "costs": name }), objects()),
        || format!("{heading}\n\n{}", tables::text(&rows, colour_stdout())),
    )
}

fn simulated(
    setting: Setting<'_>,
    cases: &[&'static Case],
    subjects: &[&'static Subject],
    threads: &[usize],
) -> Result<Vec<Row>, Failure> {
    let mut progress = Progress::new(cases.len() * subjects.len() * threads.len());
    let row = |(case, subject, workers): (&'static Case, &'static Subject, usize)| {
        let row = Row::of(&Setting { workers, ..setting }, subject, case)?;
        progress.step(&format!("{}: {}, {workers} workers", case.name, subject.name));
        Ok(row)
    };
    let all = every!(
        case in cases, subject in subjects, workers in threads => (case, subject, workers)
    );
    all.into_iter().map(row).collect()
}

fn costs(name: &str) -> Result<&'static Costs, Failure> {
    COSTS.iter().find(|costs| costs.name == name).ok_or_else(|| {
        let known = COSTS.each_ref().map(|costs| costs.name).join(", ");
        Failure::arguments(format!("no costs '{name}'; there are: {known}"))
    })
}

/// The published numbers of domains, of which those that fit the machine are used.
const THREADS: [usize; 5] = [5, 20, 40, 80, 115];

fn threads(asked: Option<&Counts>, machine: &Machine) -> Result<Vec<usize>, Failure> {
    let cpus = machine.cores() as usize;
    let here = || THREADS.into_iter().filter(|&count| count <= cpus).collect();
    let threads = asked.map_or_else(here, |Counts(threads)| threads.clone());
    match threads.iter().find(|count| !(2..=cpus).contains(count)) {
        Some(count) => Err(Failure::arguments(format!(
            "--threads {count}: {} has {cpus} CPUs, one worker each: from 2 to {cpus}",
            machine.name
        ))),
        None if threads.is_empty() => Err(Failure::arguments(format!(
            "{} has {cpus} CPUs only; say how many workers by --threads",
            machine.name
        ))),
        None => Ok(threads),
    }
}
