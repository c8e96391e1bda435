//! `bench options`: chains of tasks, each of which spawns the next: the option pricing of the
//! dissertation, and alignments of sequences.
//!
//! | module | has |
//! |---|---|
//! | [`binomial`], [`alignment`] | the computations of chains |
//! | [`problems`] | problems and their expected answers |
//! | [`cases`] | cases and conditions |
//! | [`work`] | the tasks, for any runner |
//! | [`measure`] | one repetition |
//! | [`go`] | the peer in Go |
//!
//! Code shared with other benchmarks of pools is in [`pools`](super::pools).

mod alignment;
mod binomial;
pub mod cases;
mod go;
mod measure;
pub mod problems;
mod work;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::Args;
use serde_json::Value;

pub use measure::{Order, measure};

use antiphon_report::failure::Failure;
use antiphon_report::list::Counts;

use super::benchmark::{self, Benchmark, ColumnsOf, RowOf};
use super::mix::hosts::POLICIES;
use super::neighbours::Load;
use super::pools::built::{Built, Language};
use super::pools::figures::Figures;
use super::pools::go::COMMON;
use super::pools::policies;
use super::pools::rows::{self, Summary};
use super::pools::subjects::ours::STAGES;
use super::repeat::repeat;
use super::report::Beside;
use super::rounds::{Measurement, Repeated, Rounds};
use super::settings::Settings;
use crate::every::every;
use crate::ticks::Ticks;
use cases::{Case, Cell, Depths, Kernel};

const SUBJECTS: &str = "fifo/steal-half,lifo/steal-half,lifo-slot/steal-half,adaptive/steal-half,\
                        staged,edf,lifo/steal-half+stages";
const AGAINST: &str = "loop,go,tokio,smol,rayon,rayon-fifo";
const PEERS: [&str; 6] = ["loop", go::NAME, "tokio", "smol", "rayon", "rayon-fifo"];
const ABOUT: &str = "\
Latencies are from the beginning of the run, or from when a chain was due, to its end. Each chain's
answer was what one thread had found.
";

/// Maximal time of a task with any runner, without its nodes, in seconds.
const SLOW_S: f64 = 1e-5;
/// Maximal time of each node of a lattice or table, in seconds.
const NODE_S: f64 = 2e-8;

/// Options: measure policies with chains of tasks, most of them short, some long
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. docs/options.md has the figures
of the dissertation beside ours.

Examples:
  antiphon bench options --subject fifo/steal-half,lifo/steal-half --against loop,go
  antiphon bench options --subject lifo/steal-half,lifo/steal-half+stages --long-depth 5000
  antiphon bench options --case open --rate 20000 --kernel smith-waterman --long-depth 1000")]
pub struct Arguments {
    /// Our policies, with the names of `antiphon bench packets`: fifo/steal-half,
    /// lifo-slot/steal-half, staged, edf, …; with +stages, in two pools, one of which runs the long
    /// chains
    #[arg(long, alias = "policy", value_name = "LIST", default_value = SUBJECTS)]
    subject: String,
    /// Peers to compare with; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = AGAINST)]
    against: String,
    /// Problem that a chain solves
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "binomial")]
    kernel: Vec<Kernel>,
    /// Times at which chains begin
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "closed")]
    case: Vec<Case>,
    /// Chains per second, in the case open
    #[arg(long, value_name = "N", default_value_t = 10_000.0)]
    rate: f64,
    /// Number of chains
    #[arg(long, value_name = "N", default_value_t = 30_000,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    options: u64,
    /// Number of steps of a chain
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u16).range(1..=20_000))]
    depth: u16,
    /// Number of steps of a long chain: 2000 in the dissertation's text, 5000 in its program
    #[arg(long, value_name = "N", default_value_t = 2000,
          value_parser = clap::value_parser!(u16).range(1..=20_000))]
    long_depth: u16,
    /// Probability of a long chain
    #[arg(long, value_name = "P", default_value_t = 0.005)]
    long_share: f64,
    /// Strike price of the option; the present price is 100
    #[arg(long, value_name = "PRICE", default_value_t = 110.0)]
    strike: f64,
    /// Number of tasks that begin chains
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    spawners: u32,
    /// Numbers of threads that run tasks; one or more of them also begin chains
    #[arg(long, value_name = "LIST", default_value = "2")]
    workers: Counts,
    /// Number of tasks for which a worker has room; without room, it runs a new task at once
    #[arg(long, value_name = "N", default_value_t = 1 << 17,
          value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    capacity: u32,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan<'a> {
    arguments: &'a Arguments,
    cells: Vec<Cell>,
    rounds: Rounds,
    ticks: Ticks,
    /// The Go program, or why it is missing.
    go: Result<Built, String>,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments; or a subject that lost a chain, found a wrong answer or never ended.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    benchmark::run(&plan(arguments)?, &arguments.settings)
}

fn plan(arguments: &Arguments) -> Result<Plan<'_>, Failure> {
    let Arguments { subject, against, settings, rate, long_share, strike, .. } = arguments;
    if !(1.0..=1e7).contains(rate) {
        return Err(Failure::arguments("--rate takes chains a second from 1, such as 10000"));
    }
    if !(0.0..=1.0).contains(long_share) {
        return Err(Failure::arguments(
            "--long-share takes a probability from 0 to 1, such as 0.005",
        ));
    }
    if !(1.0..=10_000.0).contains(strike) {
        return Err(Failure::arguments("--strike takes a price from 1 to 10000, such as 110"));
    }
    let rounds = settings.rounds("policy", (subject, names()), (against, &PEERS))?;
    let go = if rounds.peers.contains(&go::NAME) {
        Built::of("options", Language::Go, &[go::SOURCE, COMMON])?
    } else {
        Err("it is not asked for".to_owned())
    };
    Ok(Plan { arguments, cells: cells(arguments), rounds, ticks: Ticks::calibrate(), go })
}

/// Returns the names of all our runners; in two pools, for the same policies as in `bench mix`.
fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let composed = POLICIES.into_iter().map(|name| &*format!("{name}{STAGES}").leak());
        policies::names().iter().copied().chain(composed).collect()
    });
    &NAMES
}

fn cells(arguments: &Arguments) -> Vec<Cell> {
    let Arguments { kernel, case, spawners, workers: Counts(workers), settings, .. } = arguments;
    let depths = Depths {
        short: arguments.depth.into(),
        long: arguments.long_depth.into(),
        long_share: arguments.long_share,
    };
    let spawners = *spawners;
    every!(
        load in &settings.load, kernel in kernel, case in case, workers in workers
        => Cell { load, kernel, case, depths, spawners, workers }
    )
}

/// Returns a repetition with default settings, except for the number of options, of which it has a
/// part; and its time limit in seconds.
pub fn usual(
    subject: &str,
    workers: usize,
    part: f64,
    (seed, ticks): (u64, Ticks),
) -> (Order, f64) {
    let depths = Depths { short: 20, long: 2000, long_share: 0.005 };
    let (load, kernel, case, spawners) = (Load::Idle, Kernel::Binomial, Case::Closed, 1);
    let order = Order {
        subject: subject.to_owned(),
        cell: Cell { load, kernel, case, depths, spawners, workers },
        chains: (30_000.0 * part).ceil() as u64,
        capacity: 1 << 17,
        rate: 1.0,
        strike: 110.0,
        seed,
        ticks,
        go: Err("it is not asked for".to_owned()),
    };
    let seconds = seconds(&order);
    (order, seconds)
}

impl Measurement for Plan<'_> {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        let Arguments { options, capacity, rate, strike, .. } = *self.arguments;
        let order = Order {
            subject: subject.to_owned(),
            cell,
            chains: options,
            capacity: capacity as usize,
            rate,
            strike,
            seed: self.rounds.seed,
            ticks: self.ticks,
            go: self.go.as_ref().map(Built::program).map_err(String::clone),
        };
        let seconds = seconds(&order);
        repeat(&super::Order::Options(order), seconds)
    }
}

impl Benchmark for Plan<'_> {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        rows::summaries(one, &[])
    }

    fn conditions(&self, row: &RowOf<Self>) -> Value {
        rows::conditions(row)
    }

    fn columns(&self, rows: &[RowOf<Self>]) -> ColumnsOf<Self> {
        rows::columns(rows)
    }

    fn about(&self, _rows: &[RowOf<Self>]) -> String {
        format!("{ABOUT}{}", rows::ABOUT)
    }

    fn trouble(&self, rows: &[RowOf<Self>]) -> Option<String> {
        rows::trouble(rows)
    }
}

/// Returns the time limit of a repetition, in seconds.
fn seconds(order: &Order) -> f64 {
    let Depths { short, long, long_share } = order.cell.depths;
    let chain = |depth: usize| depth as f64 * SLOW_S + (depth * depth) as f64 * NODE_S;
    let chains = chain(short) * (1.0 - long_share) + chain(long) * long_share;
    let open_s = if order.cell.case == Case::Open { order.chains as f64 / order.rate } else { 0.0 };
    open_s + order.chains as f64 * chains
}
