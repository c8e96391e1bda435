//! `bench thesis`: whether one policy is best for everything, and whether composing several helps.
//! This is the question of the dissertation ("no single, perfect scheduling strategy").
//!
//! | module | has |
//! |---|---|
//! | [`workloads`] | the workloads, and the figures by which each is judged |
//! | [`mixed`] | the workload that combines all of them |
//! | [`houses`] | the runners of the mixed workload: one policy, or several |
//! | [`report`] | the table, and the conclusion |

mod houses;
mod mixed;
mod report;
mod workloads;

use std::process::ExitCode;

use clap::Args;

pub use mixed::{Order, measure};

use antiphon_report::failure::Failure;
use antiphon_report::table::colour_stdout;

use super::rounds::{Measurement, Repeated, Rounds};
use super::settings::{Printed, Settings};
use crate::ticks::Ticks;
use workloads::{Cell, WORKLOADS, Workload};

const SUBJECTS: &str = "fifo/steal-half,lifo/steal-half,lifo/shallow,lifo-slot/steal-half,\
                        adaptive/steal-half,staged,edf,pools,pools-nice,two-pools";

/// Thesis: find out whether one policy is the best for packets, options and calls, and whether
/// several pools do better
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. docs/packets.md, docs/options.md
and docs/mix.md describe the workloads; docs/mix.md also has the results.

Example:
  antiphon bench thesis --repetitions 5
  antiphon bench thesis --repetitions 3 --frames 50 --policy fifo/steal-half,edf,pools")]
pub struct Arguments {
    /// Policies, with the names of `antiphon bench packets`; and, only for the mixed workload,
    /// pools, pools-nice and two-pools, which use several pools
    #[arg(long, alias = "subject", value_name = "LIST", default_value = SUBJECTS)]
    policy: String,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    workers: u16,
    /// Number of frames of each leg, 20 ms apart: the length of conferences
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(5..=100_000))]
    frames: u32,
    /// Size of the load of packets, options and conferences, relative to the usual one
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    part: f64,
    #[command(flatten)]
    settings: Settings,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments; or a subject that lost a task, or never ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if !(0.001..=10.0).contains(&arguments.part) {
        return Err(Failure::arguments("--part takes a number from 0.001 to 10, such as 0.1"));
    }
    let names = houses::names();
    let rounds = arguments.settings.rounds("policy", (&arguments.policy, &names), ("", &[]))?;
    let mut singles = rounds.subjects.clone();
    singles.retain(|name| workloads::policies().contains(name));
    let workers = arguments.workers.into();
    let &Arguments { frames, part, .. } = arguments;
    let cells = WORKLOADS.map(|workload| Cell { workload, workers, frames, part });
    let plan = Plan { cells, rounds, singles, ticks: Ticks::calibrate() };
    let measured = plan.measure()?;
    let Plan { rounds, singles, .. } = plan;
    let report = report::put_together(&singles, &rounds.subjects, &measured, rounds.seed, workers);
    arguments.settings.print(Printed {
        json: report.json(),
        text: report.text(colour_stdout()),
        others_cpus: report.others_cpus(),
        trouble: report.trouble(),
    })
}

/// The measurements to take.
struct Plan {
    cells: [Cell; WORKLOADS.len()],
    rounds: Rounds,
    /// The subjects that are one policy.
    singles: Vec<&'static str>,
    ticks: Ticks,
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Vec<f64>;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn takes_part(&self, cell: &Cell, subject: &str) -> bool {
        cell.workload == Workload::Mixed || self.singles.contains(&subject)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Vec<f64>> {
        cell.repeat(subject, self.rounds.seed, self.ticks)
    }
}
