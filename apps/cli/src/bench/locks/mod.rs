//! `bench locks`: mutual-exclusion locks, alone and under contention.
//!
//! | module | does |
//! |---|---|
//! | [`plan`] | which cells, in which order: repetition by repetition, subjects shuffled |
//! | [`repeat`] | one repetition in a process of its own, with an end to its time |
//! | [`measure`] | what that process does |
//! | [`subjects`] | the locks |
//! | [`neighbours`], [`others`] | who else uses the machine: because we want it, or anyhow |
//! | [`rows`] | medians, quartiles and ratios of what came back |
//! | [`tables`] | tables for people |

mod measure;
mod neighbours;
mod others;
mod plan;
mod repeat;
mod rows;
mod subjects;
mod tables;

use std::process::ExitCode;

use clap::Args;

use crate::failure::Failure;
use crate::list::{Counts, names};
use crate::output::{progress::Progress, report, say};
use measure::Ticks;
use neighbours::Load;
use plan::Plan;

/// The hidden verb that carries out one repetition.
pub const REPETITION: &str = "__repetition";
/// The hidden verb of a busy neighbour.
pub const NEIGHBOUR: &str = neighbours::VERB;

const SUBJECTS: &str = "shfl-mutex,shfl-mutex+light,shfl-mutex+published,shfl-spin";
const AGAINST: &str = "glibc,glibc-adaptive,std,parking_lot,nsync,absl";

/// Locks: what they cost alone, and what becomes of them under contention
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a process of its own; the first is rejected. A ratio is the median of the
ratios of paired repetitions. For ns_per_op less is better, for ops_per_s more.

Example:
  antiphon bench locks --case short --threads 2,8,32 --against glibc,std --load idle,noisy")]
pub struct Arguments {
    /// Threads that meet at the lock
    #[arg(long, value_name = "LIST", default_value = "2,4,8,16,32,64")]
    threads: Counts,
    /// Our locks: shfl-mutex, shfl-mutex+light, shfl-mutex+published, shfl-spin; and, to compare
    /// with, tas, ttas, ticket, mcs, mcs-stp, clh, futex
    #[arg(long, value_name = "LIST", default_value = SUBJECTS)]
    subject: String,
    /// Peers; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = AGAINST)]
    against: String,
    /// An idle machine, or two busy neighbours beside us
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "idle")]
    load: Vec<Load>,
    /// Workloads: short, 5us, uncontended
    #[arg(long, value_name = "LIST", default_value = "uncontended,short,5us")]
    case: String,
    /// How long to measure in each repetition
    #[arg(long, value_name = "S", default_value_t = 0.2, allow_negative_numbers = true)]
    seconds: f64,
    /// Repetitions that count
    #[arg(long, value_name = "N", default_value_t = 11)]
    repetitions: usize,
    /// Of the order of subjects
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
///
/// # Errors
///
/// Bad arguments, or a lock that broke or never came to an end.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = planned(arguments)?;
    let mut progress = Progress::new(plan.steps());
    let measured = plan.carry_out(&mut progress)?;
    drop(progress);
    let report = rows::put_together(&plan, &measured);
    if arguments.json {
        report::print(report.json())?;
    } else {
        say(&tables::text(&report))?;
    }
    if let Some(cpus) = report.others_cpus().filter(|&cpus| cpus > 0.1) {
        eprintln!("antiphon: the machine was not idle: others used {cpus:.1} CPUs meanwhile");
    }
    match report.trouble() {
        Some(trouble) => Err(Failure::measured(trouble)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn planned(arguments: &Arguments) -> Result<Plan, Failure> {
    if !(arguments.seconds > 0.0 && arguments.seconds <= 3600.0) {
        return Err(Failure::arguments("--seconds takes a time from 0.001 to 3600, such as 0.2"));
    }
    if arguments.repetitions == 0 {
        return Err(Failure::arguments("--repetitions takes a number from 1, such as 11"));
    }
    let subjects = names("lock of ours", &arguments.subject, subjects::OURS);
    let peers = names("peer", &arguments.against, subjects::PEERS);
    let cases = names("case", &arguments.case, &["uncontended", "short", "5us"]);
    let (subjects, peers, cases) = (
        subjects.map_err(Failure::arguments)?,
        peers.map_err(Failure::arguments)?,
        cases.map_err(Failure::arguments)?,
    );
    if subjects.is_empty() && peers.is_empty() {
        return Err(Failure::arguments("nothing to measure; name a lock with --subject"));
    }
    Ok(Plan {
        cells: plan::cells(&arguments.load, &cases, &arguments.threads.0),
        subjects,
        peers,
        repetitions: arguments.repetitions,
        seconds: arguments.seconds,
        seed: arguments.seed,
        ticks: Ticks::calibrate(),
    })
}

/// Carries out one repetition and prints its outcome.
///
/// # Errors
///
/// If `order` is not one that [`run`] gives.
pub fn repetition(order: &str) -> Result<ExitCode, Failure> {
    neighbours::end_with_parent();
    let order = serde_json::from_str(order).map_err(Failure::arguments)?;
    let outcome = measure::measure(&order).map_err(Failure::arguments)?;
    let line = serde_json::to_string(&outcome).map_err(Failure::measured)?;
    println!("{line}");
    Ok(ExitCode::SUCCESS)
}

/// Burns a CPU until its parent ends.
///
/// # Errors
///
/// None; the type is that of every verb.
pub fn neighbour(parent: u32) -> Result<ExitCode, Failure> {
    neighbours::burn(parent)
}
