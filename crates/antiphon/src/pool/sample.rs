//! Sampled tasks: one task of several records how long it has waited and run.
//!
//! A sampled task is a separate task that contains the original one. Other tasks are unchanged: a
//! task that is not recorded costs one count when it is made ready.

use std::cell::Cell;
use std::sync::Arc;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use antiphon_runtime::flight::{Event, Pace, Sample, What};
use antiphon_runtime::sched::{Crew, Policy};
use antiphon_runtime::task::Task;

use super::blocks::Blocks;
use super::ledger::Ledger;
use crate::local;
use crate::observe::Caller;
use crate::worker::note;

/// Approximate time between two recorded tasks that a thread makes ready, in nanoseconds.
const PERIOD_NS: u64 = 256_000;
/// Maximum number of tasks that one recorded task stands for.
const MOST: u32 = 1024;

/// Which of the tasks that the calling thread makes ready are recorded, for all pools.
struct Makes {
    /// The number of tasks that the next recorded one stands for.
    of: Cell<u32>,
    pace: Cell<Pace>,
}

thread_local! {
    static MAKES: Makes = const {
        let pace = Pace::new(PERIOD_NS, MOST);
        Makes { of: Cell::new(1), pace: Cell::new(pace) }
    };
}

/// Returns `task`, which is about to be made ready, or a task that runs and records it: in the
/// ledger, if tasks of that pool are fibers. `seat` returns the caller's seat in the crew.
#[inline]
pub(super) fn sampled<Y: Policy<Linux>>(
    (crew, ledger): (&Crew<Linux, Y>, Option<&Arc<Ledger>>),
    task: Task<Linux>,
    caller: Caller,
    seat: impl FnOnce() -> Option<usize>,
) -> Task<Linux> {
    let left = local::with(|own| {
        let left = own.unrecorded.get().checked_sub(1);
        own.unrecorded.set(left.unwrap_or(0));
        left
    });
    if left.is_some() { task } else { sample((crew, ledger), task, caller, seat) }
}

/// Not inlined, so that it runs on one thread from beginning to end.
#[cold]
#[inline(never)]
fn sample<Y: Policy<Linux>>(
    recorder: (&Crew<Linux, Y>, Option<&Arc<Ledger>>),
    task: Task<Linux>,
    caller: Caller,
    seat: impl FnOnce() -> Option<usize>,
) -> Task<Linux> {
    MAKES.with(|makes| makes.sample(recorder, task, caller, seat))
}

impl Makes {
    fn sample<Y: Policy<Linux>>(
        &self,
        (crew, ledger): (&Crew<Linux, Y>, Option<&Arc<Ledger>>),
        task: Task<Linux>,
        caller: Caller,
        seat: impl FnOnce() -> Option<usize>,
    ) -> Task<Linux> {
        let (of, ready_ns) = (self.of.get(), Linux::now(Clock::Monotonic));
        let mut pace = self.pace.get();
        let next = pace.look(ready_ns, of);
        self.pace.set(pace);
        self.of.set(next);
        local::with(|own| own.unrecorded.set(next - 1));
        if !crew.is_recorded() {
            return task;
        }
        // A thread without a seat counts as a caller from outside.
        let maker = seat().map(|seat| seat as u32);
        let sample = Sample { ready_ns, maker, of };
        if let Some(ledger) = ledger.cloned() {
            return Task::detached_in(Blocks, move || ledger.run(task, sample, caller));
        }
        let crew = std::ptr::from_ref(crew).addr();
        Task::detached_in(Blocks, move || run(task, sample, std::ptr::without_provenance(crew)))
    }
}

/// Runs and records the task. If the caller is no worker of the crew at that address, the event is
/// not recorded.
fn run(task: Task<Linux>, sample: Sample, crew: *const ()) {
    let began_ns = Linux::now(Clock::Monotonic);
    task.run();
    let ended_ns = Linux::now(Clock::Monotonic);
    note(crew, Event { began_ns, ended_ns, what: What::Task(sample) });
}
