//! A run: the state that its simulated threads share, and how they find it.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use antiphon_platform::Platform;
use antiphon_runtime::sched::Crew;
use antiphon_sim::{Sim, think};

use super::BoxedPolicy;
use super::schedule::{By, Schedule, What};
use super::timers::Timers;
use super::worker::Seat;

/// The state that the threads of a run share. The threads are, in the order of their numbers: the
/// calling thread from outside, the workers, and the timer thread.
pub(super) struct Ongoing {
    /// Unique among the runs of the process.
    pub(super) id: u64,
    pub(super) seed: u64,
    pub(super) crew: Crew<Sim, BoxedPolicy>,
    pub(super) timers: Timers,
    pub(super) schedule: RefCell<Schedule>,
    /// Task numbers and messages of panics that no caller has taken yet, wherever the payload is.
    pub(super) uncaught: RefCell<Vec<(u64, String)>>,
    /// One seat for each thread.
    pub(super) seats: Box<[Seat]>,
    spawned: Cell<u64>,
}

/// Capacity of the queue for tasks from outside, as in a pool on Linux.
const OUTSIDE: usize = 4_096;

static RUNS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Rc<Ongoing>>> = const { RefCell::new(None) };
}

/// Returns the run that the calling thread is in. Panics if there is none.
#[track_caller]
pub(super) fn current() -> Rc<Ongoing> {
    find().expect("called outside of a run: see `Runner::run`")
}

/// Returns the run with this id. Panics unless the calling thread is in that run.
#[track_caller]
pub(super) fn of(id: u64) -> Rc<Ongoing> {
    let run = find().filter(|run| run.id == id);
    run.expect("used outside of its run: on another thread, or after the end of the run")
}

pub(super) fn is_current(id: u64) -> bool {
    find().is_some_and(|run| run.id == id)
}

/// Returns the run that the calling thread is in, if any.
pub(super) fn find() -> Option<Rc<Ongoing>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Keeps the calling thread in a run until dropped.
pub(super) struct Entered(());

impl Entered {
    pub(super) fn new(run: Rc<Ongoing>) -> Self {
        assert!(find().is_none(), "a run inside of a run");
        CURRENT.set(Some(run));
        Self(())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.take();
    }
}

impl Ongoing {
    pub(super) fn new(seed: u64, policy: BoxedPolicy, workers: usize) -> Self {
        Self {
            // Relaxed: only uniqueness matters.
            id: RUNS.fetch_add(1, Relaxed),
            seed,
            crew: Crew::new(policy, workers, OUTSIDE),
            timers: Timers::new(),
            schedule: RefCell::default(),
            uncaught: RefCell::default(),
            seats: (0..workers + 2).map(|_| Seat::default()).collect(),
            spawned: Cell::new(0),
        }
    }

    /// Returns the number of a new task, and records that it was spawned.
    pub(super) fn spawn(&self) -> u64 {
        self.spawned.set(self.spawned.get() + 1);
        let task = self.spawned.get();
        self.note(task, What::Spawned);
        task
    }

    /// Records an event of a task in the schedule.
    pub(super) fn note(&self, task: u64, what: What) {
        let at_ns = antiphon_sim::now();
        let by = match thread().checked_sub(1) {
            None => By::Outside,
            Some(worker) if worker < self.crew.workers() => By::Worker(worker),
            Some(_) => By::Timers,
        };
        self.schedule.borrow_mut().push(at_ns, by, task, what);
    }

    /// Runs a part of a task, and records how it ends. `rests` returns, for the value of the part,
    /// whether the task has more parts.
    pub(super) fn perform<T>(
        &self,
        task: u64,
        part: impl FnOnce() -> T,
        rests: impl FnOnce(&T) -> bool,
    ) -> Result<T, Caught> {
        linger();
        self.note(task, What::Began);
        let done = catch_unwind(AssertUnwindSafe(part));
        let what = match &done {
            Ok(done) if rests(done) => What::Waits,
            Ok(_) => What::Ended,
            Err(panic) => {
                let message = message(panic.as_ref());
                self.uncaught.borrow_mut().push((task, message.clone()));
                What::Panicked(message)
            }
        };
        self.note(task, what);
        done.map_err(|panic| Caught { task, panic })
    }
}

/// Returns the number of the calling thread within the run, from 0.
pub(super) fn thread() -> usize {
    Sim::thread().0 as usize - 1
}

/// Delays the caller by a random time, so that other threads may go first.
pub(super) fn linger() {
    const USUAL_NS: u64 = 500;
    const LONG_NS: u64 = 20_000;
    think(if Sim::random().is_multiple_of(8) { LONG_NS } else { USUAL_NS });
}

/// The payload of a task's panic. Unless a caller asks for it, the run fails with it.
pub(super) struct Caught {
    task: u64,
    panic: Box<dyn Any + Send>,
}

impl Caught {
    pub(super) fn into_panic(self) -> Box<dyn Any + Send> {
        current().uncaught.borrow_mut().retain(|(task, _)| *task != self.task);
        self.panic
    }
}

/// Returns the message of a panic.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic whose payload is not text".to_owned())
}
