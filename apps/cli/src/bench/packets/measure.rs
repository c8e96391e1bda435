//! What a repetition does, in a process of its own: runs the case, checks that each packet was
//! handled once, and counts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::arrivals::{self, Arrival, STEP_NS};
use super::cases::{Case, Cell, Form};
use super::contents::Buffers;
use super::tally::{self, Step, Tally};
use super::work::{Run, Runner, Work};
use super::{go, subjects};
use crate::bench::measure::Ticks;
use crate::bench::measure::ticks::{now, since};
use crate::bench::measure::usage::Usage;
use crate::bench::rounds::Outcome;

/// One repetition.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// Who runs the tasks.
    pub subject: String,
    /// What they are.
    pub cell: Cell,
    /// How many packets.
    pub packets: u64,
    /// For how many tasks each worker has room.
    pub capacity: usize,
    /// Packets a second, where a case has a rate.
    pub rate: f64,
    /// The file that says when they are due, for the case `trace`.
    pub arrivals: Option<PathBuf>,
    /// Whether what the pool has recorded is wanted.
    pub trace: bool,
    /// Of what is drawn by lot.
    pub seed: u64,
    /// How the clock counts.
    pub ticks: Ticks,
    /// The program of the peer that is one, or why there is none.
    pub go: Result<PathBuf, String>,
}

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Tasks that ended a second, the spawners left out.
    pub tasks_per_s: f64,
    /// CPU time of the process, but for what spawners waited for packets to be due.
    pub cpu_us_per_task: f64,
    /// By the steps of the ramp; one where there are none.
    pub steps: Vec<Latencies>,
    /// What the pool has counted, where it is one of ours.
    pub counted: Option<Counted>,
}

/// Of the packets of a step.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latencies {
    /// The mean, in nanoseconds; so too the others.
    pub mean: f64,
    /// A fifth is below; so too the others.
    pub p20: f64,
    /// The median.
    pub p50: f64,
    /// 99 of 100 are below.
    pub p99: f64,
    /// 999 of 1000.
    pub p999: f64,
    /// 9999 of 10 000.
    pub p9999: f64,
    /// The longest.
    pub max: f64,
    /// Packets a second that were due in a step of the ramp.
    pub offered_per_s: f64,
    /// Of these, how many came to an end in time.
    pub goodput_per_s: f64,
    /// How many packets were due by the end of the step, and not done.
    pub backlog: f64,
}

/// What a pool of ours has counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Counted {
    /// How often there was no room for a task.
    pub spawner_retries: u64,
    /// How often a worker looked for tasks of others.
    pub steal_attempts: u64,
    /// How often it got some.
    pub steal_hits: u64,
    /// What it has recorded of its end, as a timeline, if that is wanted.
    pub trace: Option<String>,
}

/// Whether all is done: looked at so often.
const LOOKS: Duration = Duration::from_millis(1);
/// A packet without a size, where others of the trace have one, has as much as the longest of them,
/// and so many bytes at least.
const PLAIN: usize = 2000;
/// Packets by which the capacity is measured.
const PROBED: u64 = 20_000;

/// Carries out one repetition.
///
/// # Errors
///
/// If the subject is unknown, or the trace can't be read any more.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    if order.subject == go::NAME {
        return go::measure(order);
    }
    let trace = order.arrivals.as_deref().map(arrivals::read).transpose()?;
    subjects::with(&order.subject, order, Repetition { order, trace })
}

/// What is to be done, with a runner of any type.
pub struct Repetition<'a> {
    order: &'a Order,
    trace: Option<Vec<Arrival>>,
}

impl Repetition<'_> {
    /// Has `runner` do it.
    pub fn on<R: Runner>(
        self,
        runner: &'static R,
        counted: impl Fn() -> Option<Counted>,
    ) -> Outcome<Figures> {
        let begin = |work| Run { runner, work }.begin();
        let arrivals = match self.order.cell.case {
            Case::Ramp => match carry_out(self.order, &begin, Some(PROBED), None) {
                Ok(figures) => Some(arrivals::ramp(figures.tasks_per_s)),
                Err(broken) => return Outcome::Violation(broken),
            },
            Case::Open => Some(arrivals::steady(self.order.packets, self.order.rate)),
            _ => self.trace,
        };
        match carry_out(self.order, &begin, None, arrivals) {
            Ok(figures) => Outcome::Figures(Figures { counted: counted(), ..figures }),
            Err(broken) => Outcome::Violation(broken),
        }
    }
}

fn carry_out(
    order: &Order,
    begin: &impl Fn(&'static Work),
    probe: Option<u64>,
    arrivals: Option<Vec<Arrival>>,
) -> Result<Figures, String> {
    let Cell { case, form, heavy, copies, .. } = order.cell;
    let most = arrivals.iter().flatten().filter_map(|one| one.bytes).max();
    let buffers = match (case, form, most) {
        (_, _, Some(most)) => Buffers::sized(most.max(PLAIN)),
        (Case::Bimodal, Form::Published, None) => Buffers::small(),
        _ => Buffers::general(),
    };
    let packets = arrivals.as_ref().map_or(order.packets, |all| all.len() as u64);
    let case = if probe.is_some() { Case::General } else { case };
    // Tasks refer to it; the process ends soon.
    let work: &'static Work = Box::leak(Box::new(Work {
        case,
        form,
        heavy: heavy.filter(|_| case == Case::Bimodal),
        copies,
        buffers,
        packets: probe.unwrap_or(packets),
        arrivals,
        seed: order.seed,
        ticks: order.ticks,
        begun: now(),
        waited: AtomicU64::new(0),
        newlines: AtomicU64::new(0),
        ended: AtomicU64::new(0),
    }));
    let tasks = work.tasks();
    let before = Usage::now();
    begin(work);
    while !work.is_done(tasks) {
        std::thread::sleep(LOOKS);
    }
    let used = Usage::now().since(before);
    let done = tally::take();
    check(work, tasks, &done)?;
    Ok(figures(work, &done, used))
}

/// That each packet was handled, once, and found to have the newlines that it was given.
fn check(work: &Work, tasks: u64, done: &Tally) -> Result<(), String> {
    let packets = work.packets;
    let wanted = [tasks, packets, packets * (packets - 1) / 2, work.newlines.load(Relaxed)];
    let seen = [done.tasks, done.packets, done.numbers, done.newlines];
    let names = ["tasks", "packets", "the sum of their numbers", "newlines"];
    let wrong = (0..names.len()).find(|&at| seen[at] != wanted[at]);
    wrong.map_or(Ok(()), |at| Err(format!("{}: {} for {}", names[at], seen[at], wanted[at])))
}

fn figures(work: &Work, done: &Tally, used: Usage) -> Figures {
    let seconds = work.ticks.to_ns(since(work.begun, done.last) as f64) / 1e9;
    let waited_ns = work.ticks.to_ns(work.waited.load(Relaxed) as f64);
    let (mut due, mut ended) = (0, 0);
    let mut steps = Vec::new();
    for step in done.steps.iter().filter(|step| step.packets > 0) {
        due += step.packets;
        ended += step.ended;
        steps.push(latencies(step, work.ticks, (due - ended.min(due)) as f64));
    }
    Figures {
        tasks_per_s: done.tasks as f64 / seconds,
        cpu_us_per_task: (used.cpu_ns as f64 - waited_ns).max(0.0) / 1e3 / done.tasks as f64,
        steps,
        counted: None,
    }
}

fn latencies(step: &Step, ticks: Ticks, backlog: f64) -> Latencies {
    let at = |share| ticks.to_ns(step.latencies.quantile(share));
    let per_s = |packets: u64| packets as f64 * 1e9 / STEP_NS as f64;
    Latencies {
        mean: ticks.to_ns(step.sum as f64 / step.packets as f64),
        p20: at(0.2),
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        p9999: at(0.9999),
        max: ticks.to_ns(step.latencies.max() as f64),
        offered_per_s: per_s(step.packets),
        goodput_per_s: per_s(step.good),
        backlog,
    }
}
