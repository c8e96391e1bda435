//! `bench rwlocks`: readers-writer locks, alone and under contention.

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::list::{Counts, Shares, names};
use clap::Args;

use super::measure::Case;
use super::plan::{self, Workload};
use super::settings::LockSettings;
use super::subjects::Family;
use crate::bench::benchmark;

const SUBJECTS: &str = "shfl-rwlock,shfl-rwlock+recursive";
const AGAINST: &str = "glibc,glibc-writer,std,parking_lot";
const CASES: &str = "uncontended,short,5us,continuous";

/// Readers-writer locks: measure their cost without contention, and how readers and writers do
/// together
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. A ratio is the median of the
ratios of paired repetitions. For ns_per_op less is better, for ops_per_s more. In the case
continuous, one thread writes, and all others read in a loop.

Example:
  antiphon bench rwlocks --reads 90 --case short --threads 2,8,32 --against glibc,std")]
pub struct Arguments {
    /// Numbers of threads that use the lock
    #[arg(long, value_name = "LIST", default_value = "1,2,4,8,16,32,64")]
    threads: Counts,
    /// Shares of critical sections that only read, in percent
    #[arg(long, value_name = "LIST", default_value = "100,99,90,50")]
    reads: Shares,
    /// Our locks: shfl-rwlock, shfl-rwlock+recursive (readers pass waiting writers),
    /// shfl-rwlock+group-readers, shfl-rwlock+group-writers
    #[arg(long, value_name = "LIST", default_value = SUBJECTS)]
    subject: String,
    /// Peers to compare with; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = AGAINST)]
    against: String,
    /// Workloads: short, 5us, continuous, uncontended
    #[arg(long, value_name = "LIST", default_value = CASES)]
    case: String,
    #[command(flatten)]
    settings: LockSettings,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments, or a lock that failed or never ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let known = ["uncontended", "short", "5us", "continuous"];
    let cases = names("case", &arguments.case, &known).map_err(Failure::arguments)?;
    let Shares(shares) = &arguments.reads;
    let mixed = |case| shares.iter().map(move |&reads| Workload { case, reads: Some(reads) });
    let plain = |case| Workload { case, reads: None };
    let work: Vec<_> = cases
        .iter()
        .flat_map(|name| match *name {
            "uncontended" => [Case::UncontendedRead, Case::UncontendedWrite].map(plain).to_vec(),
            "short" => mixed(Case::Short).collect(),
            "5us" => mixed(Case::FiveMicroseconds).collect(),
            _ => vec![plain(Case::Continuous)],
        })
        .collect();
    let settings = &arguments.settings;
    let cells = plan::cells(&settings.settings.load, &work, &arguments.threads.0);
    let locks = (&arguments.subject[..], &arguments.against[..]);
    benchmark::run(&settings.plan(Family::Shared, locks, cells)?, &settings.settings)
}
