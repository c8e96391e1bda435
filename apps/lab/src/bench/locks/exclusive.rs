//! `bench locks`: mutual-exclusion locks, alone and under contention.

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::list::{Counts, names};
use clap::Args;

use super::measure::Case;
use super::plan::{self, Workload};
use super::settings::LockSettings;
use super::subjects::Family;
use crate::bench::benchmark;

const SUBJECTS: &str = "shfl-mutex,shfl-mutex+light,shfl-mutex+published,shfl-spin";
const AGAINST: &str = "glibc,glibc-adaptive,std,parking_lot,nsync,absl";

/// Locks: measure their cost without contention, and how they do with it
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. A ratio is the median of the
ratios of paired repetitions. For ns_per_op and wall_ns less is better, for ops_per_s more. The case
justine is the benchmark that is quoted for nsync: 30 threads, whatever --threads says, add 1 to one
counter 100 000 times each; the figure is the time until all have ended. With long critical
sections, the figure is the CPU time of the waiters; less is better.

Example:
  antiphon bench locks --case short --threads 2,8,32 --against glibc,std --load idle,noisy
  antiphon bench locks --case justine --against glibc,std,parking_lot,nsync
  antiphon bench locks --case long --threads 2,8 --against glibc,std --seconds 1
  antiphon bench locks --case short,5us --threads 2,8,32 --load crowd,crowd=300")]
pub struct Arguments {
    /// Numbers of threads that use the lock
    #[arg(long, value_name = "LIST", default_value = "2,4,8,16,32,64")]
    threads: Counts,
    #[arg(long, value_name = "LIST", default_value = SUBJECTS, help = subjects())]
    subject: String,
    /// Peers to compare with; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = AGAINST)]
    against: String,
    /// Workloads: short, 5us, uncontended, justine; long stands for 100us, 1ms, 10ms and sleep
    #[arg(long, value_name = "LIST", default_value = "uncontended,short,5us")]
    case: String,
    #[command(flatten)]
    settings: LockSettings,
}

/// The help of `--subject`.
fn subjects() -> String {
    let compared = Family::Exclusive.compared().join(", ");
    format!(
        "Our locks: shfl-mutex, shfl-mutex+light, shfl-mutex+published, shfl-spin; with a policy, \
         shfl-mutex+none, +distance, +priority, +wake-up; and, to compare with, {compared}"
    )
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments, or a lock that failed or never ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let known = ["uncontended", "short", "5us", "justine", "long", "100us", "1ms", "10ms", "sleep"];
    let cases = names("case", &arguments.case, &known).map_err(Failure::arguments)?;
    let work = |name: &&str| match *name {
        "uncontended" => vec![Case::Uncontended, Case::UncontendedAlone],
        "short" => vec![Case::Short],
        "justine" => vec![Case::Justine],
        "long" => Case::LONG.to_vec(),
        "100us" => vec![Case::HundredMicroseconds],
        "1ms" => vec![Case::Millisecond],
        "10ms" => vec![Case::TenMilliseconds],
        "sleep" => vec![Case::Sleep],
        _ => vec![Case::FiveMicroseconds],
    };
    let work: Vec<_> =
        cases.iter().flat_map(work).map(|case| Workload { case, reads: None }).collect();
    let settings = &arguments.settings;
    let cells = plan::cells(&settings.settings.load, &work, &arguments.threads.0);
    let locks = (&arguments.subject[..], &arguments.against[..]);
    benchmark::run(&settings.plan(Family::Exclusive, locks, cells)?, &settings.settings)
}
