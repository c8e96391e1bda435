//! `bench events`: what it takes to tell another thread that something has happened.
//!
//! | module | does |
//! |---|---|
//! | [`cases`] | what is measured, under what conditions |
//! | [`subjects`] | the ways to tell |
//! | [`measure`] | what a repetition does |
//! | [`rows`] | medians, quartiles and ratios of the figures that came back |
//! | [`json`], [`tables`] | rows for scripts, tables for people |
//! | [`page`] | the distributions, drawn |

mod cases;
mod json;
mod measure;
mod page;
mod rows;
mod subjects;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

pub use measure::{Order, measure};

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Cpus;
use antiphon_report::progress::Progress;
use antiphon_report::table::colour_stdout;

use super::measure::Ticks;
use super::repeat::repeat;
use super::rounds::Rounds;
use super::settings::{Printed, Settings, check_seconds};
use crate::pinned;
use cases::{Cases, Cell, Gaps};

const SUBJECTS: &str = "event,event+nospin,condvar,condvar+nospin,eventcount,eventcount+nospin,\
                        message,message+nospin,broadcast,broadcast+nospin,latch,latch+nospin";
const AGAINST: &str = "futex,pthread-cond,std,parking_lot,spin,eventfd,pipe,io_uring,signal,\
                       sigwait,tokio,serial-futex";
const CASES: &str = "running,parked,parked-idle-1ms,busy-target,sender-alone,broadcast,noise,clock";
/// The subject of cases that are of the machine.
const MACHINE: &str = "machine";

/// Wake-ups: how long it takes to tell another thread, and what it costs to tell
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a process of its own; the first is rejected. Times are from the sender's
side to the first instruction behind the receiver's wait. A ratio is the median of the ratios of
paired repetitions, with its 95 % interval; less is better.

Example:
  antiphon bench events --case running,parked --gap-us 3,50,1000 --against futex,pthread-cond")]
pub struct Arguments {
    /// Ours: event and message (several told one after the other), condvar, eventcount; for several
    /// at once only, broadcast and latch; without spinning, event+nospin and so on
    #[arg(long, value_name = "LIST", default_value = SUBJECTS)]
    subject: String,
    /// Peers; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = AGAINST)]
    against: String,
    /// Cases: running, parked, parked-idle-1ms, busy-target, sender-alone, broadcast (1, 2, 4 … 64
    /// waiters) or broadcast-N; of the machine itself, noise and clock
    #[arg(long, value_name = "LIST", default_value = CASES)]
    case: Cases,
    /// How long a receiver sleeps before it is told, in the case parked
    #[arg(long, value_name = "LIST", default_value = "3,50,150")]
    gap_us: Gaps,
    /// The receiver's CPUs, as the kernel numbers them, one after the other; the sender is on the
    /// first other one. The default is the second that may be used
    #[arg(long, value_name = "LIST")]
    target: Option<Cpus>,
    /// Number of trials of each repetition
    #[arg(long, value_name = "N", default_value_t = 100)]
    trials: usize,
    /// The time after which a repetition ends that has not made all its trials
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Write the distributions to a page, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements that are to be taken.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    trials: usize,
    seconds: f64,
    ticks: Ticks,
}

/// The measurements of one mechanism in one cell.
type Measured = super::rounds::Measured<Cell, measure::Figures>;

/// Measures and prints.
///
/// # Errors
///
/// Bad arguments, a mechanism that never came to an end, or a page that could not be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments)?;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let measured = plan.carry_out()?;
    let report = rows::put_together(&plan.rounds, plan.seconds, &measured);
    let drawn = html.map_or(Ok(()), |file| file.write(&page::page(&report)));
    arguments
        .settings
        .print(Printed {
            json: json::body(&report),
            text: tables::text(&report, colour_stdout()),
            others_cpus: report.others_cpus(),
            trouble: report.trouble(),
        })
        .and_then(|code| drawn.map(|()| code))
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let Arguments { subject, against, settings, trials, seconds, .. } = arguments;
    check_seconds(*seconds)?;
    if !(10..=1_000_000).contains(trials) {
        return Err(Failure::arguments("--trials takes a number from 10 to 1000000, such as 100"));
    }
    let (ours, peers) = (subjects::ours(), subjects::peers());
    let rounds = settings.rounds("mechanism", (subject, &ours), (against, &peers))?;
    let (Cases(wanted), Gaps(gaps)) = (&arguments.case, &arguments.gap_us);
    let targets = &targets(arguments.target.as_ref())?;
    let cells = |load| wanted.iter().flat_map(move |&wanted| Cell::of(load, wanted, gaps, targets));
    let cells = settings.load.iter().flat_map(|&load| cells(load)).collect();
    Ok(Plan { cells, rounds, trials: *trials, seconds: *seconds, ticks: Ticks::calibrate() })
}

/// The CPUs that were asked for, or the second that may be used.
fn targets(asked: Option<&Cpus>) -> Result<Vec<usize>, Failure> {
    let usable: Vec<_> =
        pinned::usable().into_iter().filter_map(pinned::number).map(|cpu| cpu as usize).collect();
    let Some(Cpus(asked)) = asked else {
        return Ok(usable.get(1).or(usable.first()).copied().into_iter().collect());
    };
    if let Some(other) = asked.iter().find(|cpu| !usable.contains(cpu)) {
        let usable = usable.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let what = format!("--target: this process may not use CPU {other}, but {usable}");
        return Err(Failure::arguments(what));
    }
    Ok(asked.clone())
}

impl Plan {
    fn carry_out(&self) -> Result<Vec<Measured>, Failure> {
        let groups = || self.cells.chunk_by(|a, b| is_of_the_machine(a) == is_of_the_machine(b));
        let machine = Rounds {
            subjects: Vec::new(),
            peers: vec![MACHINE],
            repetitions: self.rounds.repetitions,
            seed: self.rounds.seed,
        };
        let rounds = |cells: &[Cell]| {
            if is_of_the_machine(&cells[0]) { &machine } else { &self.rounds }
        };
        let steps = groups().map(|cells| rounds(cells).steps(cells.len())).sum();
        let mut progress = Progress::new(steps);
        let mut all = Vec::new();
        for cells in groups() {
            all.extend(rounds(cells).carry_out(cells, &mut progress, |cell, subject| {
                repeat(&super::Order::Event(self.order(cell, subject)), self.seconds)
            })?);
        }
        Ok(all)
    }

    fn order(&self, cell: Cell, subject: &str) -> Order {
        let Self { trials, seconds, ticks, .. } = *self;
        Order { subject: subject.to_owned(), cell, trials, seconds, ticks }
    }
}

fn is_of_the_machine(cell: &Cell) -> bool {
    cell.case.is_of_the_machine()
}
