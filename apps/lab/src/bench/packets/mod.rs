//! `bench packets`: the packet processing of the dissertation, on our pools and on others.
//!
//! | module | does |
//! |---|---|
//! | [`cases`] | cases and conditions |
//! | [`contents`] | the contents of a packet, and how it is processed |
//! | [`copies`] | the origin of packets' memory |
//! | [`work`] | the tasks, for any runner |
//! | [`go`] | the peer in Go |
//! | [`measure`] | one repetition |
//! | [`goal`] | a latency goal, and the policies that meet it |
//!
//! Code shared with other benchmarks of pools is in [`pools`](super::pools).

mod cases;
pub mod contents;
mod copies;
mod go;
mod goal;
mod measure;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

pub use measure::{Order, measure};

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Counts;

use super::benchmark::{self, Benchmark, ColumnsOf, RowOf};
use super::neighbours::Load;
use super::pools::built::{Built, Language};
use super::pools::figures::Figures;
use super::pools::go::COMMON;
use super::pools::rows::{self, Summary};
use super::pools::{arrivals, policies};
use super::repeat::repeat;
use super::report::Beside;
use super::rounds::{Measured, Measurement, Repeated, Rounds};
use super::settings::Settings;
use crate::every::every;
use crate::ticks::Ticks;
use cases::{Case, Cell, Form, Heavy};
use copies::Copies;
use goal::Goal;

const SUBJECTS: &str = "lifo/steal-half,fifo/steal-half,lifo/shallow,lifo/lazy-shallow";
const AGAINST: &str = "loop,go,tokio,smol,rayon,rayon-fifo,channel";

const PEERS: [&str; 7] = ["loop", go::NAME, "tokio", "smol", "rayon", "rayon-fifo", "channel"];
const ABOUT: &str = "Latencies are from when a packet was handed over, or due, to its end.\n";

/// Maximal time of a task with any runner, without heavy tasks, in seconds.
const SLOW_S: f64 = 1e-5;
/// Additional time per packet with heavy tasks, of which there are two per 1000 packets, in
/// seconds.
const HEAVY_S: f64 = 1e-4;

/// Packets: measure policies with many small tasks
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. With --goal, all our policies
are tried (or those of --subject), those that meet the goal are named, and the exit code is 1 if
none does. docs/packets.md describes the cases, and the files of arrival times.

Examples:
  antiphon bench packets --case general,open --against loop,go
  antiphon bench packets --goal 'p99<200us' --arrivals arrivals.txt")]
pub struct Arguments {
    /// Our policies, as ORDER/SPREAD: the order is fifo, lifo, stochastic-64, switch-16, reverse-8
    /// or adaptive, the spread is steal-half, steal-one, neighbours-13, -15, -20, overflow,
    /// shallow, lazy or lazy-shallow. Also lifo-slot/steal-half, lifo-slot/steal-one, staged, edf
    /// and levels
    #[arg(long, value_name = "LIST")]
    subject: Option<String>,
    /// Peers to compare with; ratios are to the first
    #[arg(long, value_name = "LIST")]
    against: Option<String>,
    /// Cases: general, heavier, spawners-N, cache, bimodal, open, ramp
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "general")]
    case: Vec<Case>,
    /// Form of the workload: that of the dissertation's text or that of its program
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "corrected")]
    form: Vec<Form>,
    /// Work of the tasks of 20 ms in the case bimodal
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "sleep")]
    heavy: Vec<Heavy>,
    /// Source of the packets' memory
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "allocated")]
    copies: Vec<Copies>,
    /// Numbers of threads that run tasks; one or more of them also make the tasks
    #[arg(long, value_name = "LIST", default_value = "2")]
    workers: Counts,
    /// Number of tasks for which a worker has room [default: 128; 1024 in the cases cache and
    /// bimodal]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1 << 20))]
    capacity: Option<u32>,
    /// Number of packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    tasks: Option<u64>,
    /// Packets per second, in the case open
    #[arg(long, value_name = "N", default_value_t = 50_000.0)]
    rate: f64,
    /// Bound for a latency: mean, p20, p50, p99, p999, p9999 or max, then '<' and a time, such as
    /// p99<200us
    #[arg(long, value_name = "GOAL", requires = "arrivals")]
    goal: Option<Goal>,
    /// File with the arrival times of packets: a line for each, with nanoseconds or seconds and,
    /// optionally, the size in bytes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["case", "tasks", "rate"])]
    arrivals: Option<PathBuf>,
    /// Write a timeline of the workers at the end of the last repetition to FILE, for Perfetto or
    /// Chrome. Needs one policy, one case and one number of workers
    #[arg(long, value_name = "FILE", conflicts_with = "goal")]
    trace: Option<PathBuf>,
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
    /// Length of the trace, in seconds.
    trace_s: f64,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments; a subject that lost a packet or never ended; or no policy that meets the goal.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let trace = OutputFile::of("--trace", arguments.trace.as_deref())?;
    let plan = plan(arguments)?;
    let measured = plan.measure()?;
    let recorded = trace.map_or(Ok(()), |file| match recorded(&measured) {
        Some(timeline) => file.write(timeline),
        None => Err(Failure::measured("--trace: no repetition has come to its end")),
    });
    let rows = benchmark::rows(&plan, &measured);
    let code = benchmark::print(&plan, &rows, &arguments.settings)?;
    recorded?;
    match arguments.goal.map(|goal| goal.verdict(&rows)) {
        Some(Err(why)) => Err(Failure::measured(why)),
        _ => Ok(code),
    }
}

/// Returns the timeline of the last repetition that has one.
fn recorded(measured: &[Measured<Cell, Figures>]) -> Option<&str> {
    let figures = measured.iter().flat_map(|one| &one.figures);
    figures.rev().find_map(|figures| figures.counted.as_ref()?.trace.as_deref())
}

fn plan(arguments: &Arguments) -> Result<Plan<'_>, Failure> {
    let Arguments { subject, against, settings, rate, .. } = arguments;
    if !(1.0..=1e8).contains(rate) {
        return Err(Failure::arguments("--rate takes packets a second from 1, such as 50000"));
    }
    let trace = arguments.arrivals.as_deref().map(arrivals::read).transpose();
    let trace = trace.map_err(Failure::arguments)?.unwrap_or_default();
    let trace_s = trace.last().map_or(0.0, |last| last.due_ns as f64 / 1e9);
    let ours = policies::names();
    let all = ours.join(",");
    let (subjects, peers) =
        if arguments.goal.is_some() { (all.as_str(), "") } else { (SUBJECTS, AGAINST) };
    let subject = subject.as_deref().unwrap_or(subjects);
    let against = against.as_deref().unwrap_or(peers);
    let rounds = settings.rounds("policy", (subject, ours), (against, &PEERS))?;
    let go = if rounds.peers.contains(&go::NAME) {
        Built::of("packets", Language::Go, &[go::SOURCE, COMMON])?
    } else {
        Err("it is not asked for".to_owned())
    };
    let (cells, ticks) = (cells(arguments), Ticks::calibrate());
    if arguments.trace.is_some() && (rounds.subjects.len(), cells.len()) != (1, 1) {
        let what = "--trace takes one policy, case and number of workers, such as --subject \
                    lifo/steal-half --case general --workers 2";
        return Err(Failure::arguments(what));
    }
    Ok(Plan { arguments, cells, rounds, ticks, go, trace_s })
}

fn cells(arguments: &Arguments) -> Vec<Cell> {
    let Arguments { form, heavy, copies, workers: Counts(workers), settings, .. } = arguments;
    let trace = [Case::Trace];
    let cases = if arguments.arrivals.is_some() { &trace[..] } else { &arguments.case };
    let (none, some) = ([None], heavy.iter().copied().map(Some).collect::<Vec<_>>());
    let heavy = |case| if case == Case::Bimodal { &some[..] } else { &none };
    every!(
        load in &settings.load, case in cases, form in form, heavy in heavy(case),
        copies in copies, workers in workers
        => Cell { load, case, form, heavy, copies, workers }
    )
}

/// Returns a repetition of a case with default settings, except for the number of packets, of which
/// it has a part; and its time limit in seconds.
pub fn usual(
    bimodal: bool,
    subject: &str,
    workers: usize,
    part: f64,
    (seed, ticks): (u64, Ticks),
) -> (Order, f64) {
    let (case, heavy) =
        if bimodal { (Case::Bimodal, Some(Heavy::Sleep)) } else { (Case::General, None) };
    let (load, form, copies) = (Load::Idle, Form::Corrected, Copies::Allocated);
    let order = Order {
        subject: subject.to_owned(),
        cell: Cell { load, case, form, heavy, copies, workers },
        packets: (case.packets(1.0) as f64 * part).ceil() as u64,
        capacity: case.capacity(),
        rate: 1.0,
        arrivals: None,
        trace: false,
        seed,
        ticks,
        go: Err("it is not asked for".to_owned()),
    };
    let seconds = seconds(&order, 0.0);
    (order, seconds)
}

/// Returns the time limit of a repetition, in seconds, for a trace of this length.
fn seconds(order: &Order, trace_s: f64) -> f64 {
    let case = order.cell.case;
    let heavy_s = if case == Case::Bimodal { HEAVY_S } else { 0.0 };
    let tasks = order.packets as f64 * f64::from(1 + case.chain());
    let open_s = if case == Case::Open { order.packets as f64 / order.rate } else { 0.0 };
    trace_s + open_s + tasks * SLOW_S + order.packets as f64 * heavy_s
}

impl Measurement for Plan<'_> {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        let Arguments { capacity, tasks, rate, arrivals, .. } = self.arguments;
        let capacity = capacity.map_or(cell.case.capacity(), |capacity| capacity as usize);
        let order = Order {
            subject: subject.to_owned(),
            cell,
            packets: tasks.unwrap_or(cell.case.packets(*rate)),
            capacity,
            rate: *rate,
            arrivals: arrivals.clone(),
            trace: self.arguments.trace.is_some(),
            seed: self.rounds.seed,
            ticks: self.ticks,
            go: self.go.as_ref().map(Built::program).map_err(String::clone),
        };
        let seconds = seconds(&order, self.trace_s);
        repeat(&super::Order::Packets(order), seconds)
    }
}

impl Benchmark for Plan<'_> {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        rows::summaries(one, one.cell().steps())
    }

    fn conditions(&self, row: &RowOf<Self>) -> Value {
        let mut keys = rows::conditions(row);
        if let Some(goal) = self.arguments.goal {
            keys["meets_goal"] = goal.is_met(row).into();
        }
        keys
    }

    fn body(&self, _rows: &[RowOf<Self>]) -> Value {
        json!({ "goal": self.arguments.goal.map(|goal| goal.to_string()) })
    }

    fn columns(&self, rows: &[RowOf<Self>]) -> ColumnsOf<Self> {
        rows::columns(rows)
    }

    fn about(&self, rows: &[RowOf<Self>]) -> String {
        let met = self.arguments.goal.and_then(|goal| goal.verdict(rows).ok());
        let met = met.map_or(String::new(), |met| format!("\n{met}"));
        format!("{ABOUT}{}{met}", rows::ABOUT)
    }

    fn trouble(&self, rows: &[RowOf<Self>]) -> Option<String> {
        rows::trouble(rows)
    }
}
