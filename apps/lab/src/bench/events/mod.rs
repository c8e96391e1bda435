//! `bench events`: the time and cost of notifying another thread of an event.
//!
//! | module | does |
//! |---|---|
//! | [`cases`] | cases and conditions |
//! | [`subjects`] | the mechanisms |
//! | [`measure`] | one repetition |
//! | [`once`] | one repetition, for reports of other verbs |
//! | [`rows`] | the values of a row |
//! | [`tables`] | the keys of reports, and tables |
//! | [`page`] | the distributions, drawn |

mod cases;
mod measure;
mod once;
mod page;
mod rows;
mod subjects;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

pub use measure::{Figures, Order, measure};
pub use once::once;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::list::Cpus;

use super::benchmark;
use super::repeat::repeat;
use super::rounds::{Measurement, Repeated, Rounds};
use super::settings::{Settings, check_seconds};
use crate::pinned;
use crate::ticks::Ticks;
use cases::{Cases, Cell, Gaps};

const SUBJECTS: &str = "event,event+nospin,condvar,condvar+nospin,eventcount,eventcount+nospin,\
                        message,message+nospin,broadcast,broadcast+nospin,latch,latch+nospin";
const AGAINST: &str = "futex,pthread-cond,std,parking_lot,spin,eventfd,pipe,io_uring,signal,\
                       sigwait,tokio,serial-futex";
const CASES: &str = "running,parked,parked-idle-1ms,busy-target,sender-alone,broadcast,noise,clock";
/// The subject of cases that measure the machine.
const MACHINE: &str = "machine";

/// Wake-ups: measure how long it takes to notify another thread, and what that costs the sender
#[derive(Args)]
#[command(after_help = "\
Each repetition runs in a separate process; the first is discarded. Times are from the sender's
call to the first instruction after the receiver's wait. A ratio is the median of the ratios of
paired repetitions, with its 95 % interval; less is better.

Example:
  antiphon bench events --case running,parked --gap-us 3,50,1000 --against futex,pthread-cond")]
pub struct Arguments {
    /// Our mechanisms: event and message (several waiters are notified one after the other),
    /// condvar, eventcount; broadcast and latch, only for several waiters at once; each with
    /// +nospin for a waiter that does not spin
    #[arg(long, value_name = "LIST", default_value = SUBJECTS)]
    subject: String,
    /// Peers to compare with; ratios are to the first
    #[arg(long, value_name = "LIST", default_value = AGAINST)]
    against: String,
    /// Cases: running, parked, parked-idle-1ms, busy-target, sender-alone, broadcast (with 1, 2, 4
    /// … 64 waiters) or broadcast-N; noise and clock measure the machine itself
    #[arg(long, value_name = "LIST", default_value = CASES)]
    case: Cases,
    /// Times for which a receiver sleeps before it is notified, in microseconds, in the case parked
    #[arg(long, value_name = "LIST", default_value = "3,50,150")]
    gap_us: Gaps,
    /// CPUs of the receiver, by the kernel's numbers, tried one after the other; the sender is on
    /// the first other CPU [default: the second CPU that may be used]
    #[arg(long, value_name = "LIST")]
    target: Option<Cpus>,
    /// Number of trials of each repetition
    #[arg(long, value_name = "N", default_value_t = 100)]
    trials: usize,
    /// Time after which a repetition ends early, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Also write the distributions to FILE as a page for a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

/// The measurements to take.
struct Plan {
    cells: Vec<Cell>,
    rounds: Rounds,
    trials: usize,
    seconds: f64,
    ticks: Ticks,
}

/// Runs the benchmark and prints its report.
///
/// # Errors
///
/// Bad arguments, a mechanism that never ended, or a page that could not be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments)?;
    let html = OutputFile::of("--html", arguments.html.as_deref())?;
    let rows = benchmark::rows(&plan, &plan.measure()?);
    let drawn = html.map_or(Ok(()), |file| file.write(&page::page(&plan, &rows)));
    let code = benchmark::print(&plan, &rows, &arguments.settings)?;
    drawn.map(|()| code)
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let Arguments { subject, against, settings, trials, seconds, .. } = arguments;
    check_seconds(*seconds)?;
    if !(10..=1_000_000).contains(trials) {
        return Err(Failure::arguments("--trials takes a number from 10 to 1000000, such as 100"));
    }
    let (ours, peers) = (subjects::ours(), subjects::peers());
    let rounds = settings.rounds("mechanism", (subject, &ours), (against, &peers))?;
    let rounds = Rounds { apart: vec![MACHINE], ..rounds };
    let (Cases(wanted), Gaps(gaps)) = (&arguments.case, &arguments.gap_us);
    let targets = &targets(arguments.target.as_ref())?;
    let cells = |load| wanted.iter().flat_map(move |&wanted| Cell::of(load, wanted, gaps, targets));
    let cells = settings.load.iter().flat_map(|&load| cells(load)).collect();
    Ok(Plan { cells, rounds, trials: *trials, seconds: *seconds, ticks: Ticks::calibrate() })
}

/// Returns the CPUs that were asked for, or else the second that may be used.
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

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = measure::Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn takes_part(&self, cell: &Cell, subject: &str) -> bool {
        cell.case.is_of_the_machine() == (subject == MACHINE)
    }

    fn repeat(
        &self,
        cell: Cell,
        subject: &'static str,
        _counts: bool,
    ) -> Repeated<measure::Figures> {
        let Self { trials, seconds, ticks, .. } = *self;
        let order = Order { subject: subject.to_owned(), cell, trials, seconds, ticks };
        repeat(&super::Order::Event(order), seconds)
    }
}
