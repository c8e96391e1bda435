//! One repetition, in a process of its own: it runs the case, checks that each packet was handled
//! once, and counts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use super::cases::{Case, Cell, Form};
use super::contents::Buffers;
use super::go;
use super::work::Work;
use crate::bench::pools::arrivals::{self, Arrival};
use crate::bench::pools::course::Course;
use crate::bench::pools::figures::{Counted, Figures};
use crate::bench::pools::runner::{Run, Runner};
use crate::bench::pools::subjects::{self, Setup, Visitor};
use crate::bench::rounds::Outcome;
use crate::ticks::Ticks;

/// The order for one repetition.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// Name of the runner of the tasks.
    pub subject: String,
    /// The conditions.
    pub cell: Cell,
    /// Number of packets.
    pub packets: u64,
    /// Capacity of each worker's queue, in tasks.
    pub capacity: usize,
    /// Packets per second, for a case with a rate.
    pub rate: f64,
    /// File of arrival times, for the case `trace`.
    pub arrivals: Option<PathBuf>,
    /// Whether to return the pool's recording.
    pub trace: bool,
    /// The seed of all random choices.
    pub seed: u64,
    /// Rate of the counter that times.
    pub ticks: Ticks,
    /// Path of the peer's Go program, or why it is missing.
    pub go: Result<PathBuf, String>,
}

/// Size of a packet without one in a trace where others have sizes: that of the longest, and at
/// least this many bytes.
const PLAIN: usize = 2000;
/// Number of packets by which the capacity is measured.
const PROBED: u64 = 20_000;

/// Carries out one repetition.
///
/// # Errors
///
/// If the subject is unknown, or the trace can no longer be read.
pub fn measure(order: &Order) -> Result<Outcome<Figures>, String> {
    if order.subject == go::NAME {
        return go::measure(order);
    }
    let trace = order.arrivals.as_deref().map(arrivals::read).transpose()?;
    let Order { cell, capacity, trace: traced, .. } = *order;
    let setup = Setup { workers: cell.workers, capacity, trace: traced };
    subjects::with(&order.subject, &setup, Repetition { order, trace })
}

/// The work of a repetition, for a runner of any type.
struct Repetition<'a> {
    order: &'a Order,
    trace: Option<Vec<Arrival>>,
}

impl Visitor for Repetition<'_> {
    type Output = Outcome<Figures>;

    fn visit<R: Runner>(
        self,
        runner: &'static R,
        counted: &dyn Fn() -> Option<Counted>,
    ) -> Outcome<Figures> {
        let begin = |work: &'static Work| Run { runner, work }.begin();
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
    // Leaked because tasks refer to it; the process ends soon.
    let work: &'static Work = Box::leak(Box::new(Work {
        case,
        form,
        heavy: heavy.filter(|_| case == Case::Bimodal),
        copies,
        buffers,
        packets: probe.unwrap_or(packets),
        seed: order.seed,
        newlines: AtomicU64::new(0),
        course: Course::new(order.ticks, arrivals, case.spawners()),
    }));
    let tasks = work.tasks();
    let (done, figures) = work.course.run(tasks, || begin(work));
    let newlines = work.newlines.load(Relaxed);
    done.check(tasks, ("packets", work.packets), ("newlines", newlines))?;
    Ok(figures)
}
