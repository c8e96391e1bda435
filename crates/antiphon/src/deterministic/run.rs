//! A run: what its simulated threads share, and how they find it.

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

/// The state that the threads of a run share. They are, by number: the thread that calls from
/// outside, the workers, and the thread of the timers.
pub(super) struct Ongoing {
    /// Unlike that of any other run of the process.
    pub(super) id: u64,
    pub(super) seed: u64,
    pub(super) crew: Crew<Sim, BoxedPolicy>,
    pub(super) timers: Timers,
    pub(super) schedule: RefCell<Schedule>,
    /// Panics of tasks that no caller has taken yet, wherever the returned value is.
    pub(super) uncaught: RefCell<Vec<(u64, String)>>,
    /// One seat for each thread.
    pub(super) seats: Box<[Seat]>,
    spawned: Cell<u64>,
}

/// Tasks from outside that have room, as in a pool of Linux.
const OUTSIDE: usize = 4_096;

static RUNS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Rc<Ongoing>>> = const { RefCell::new(None) };
}

/// The run that the calling thread is in.
#[track_caller]
pub(super) fn current() -> Rc<Ongoing> {
    find().expect("called outside of a run: see `Runner::run`")
}

/// The run of this id, which must be the one that the calling thread is in.
#[track_caller]
pub(super) fn of(id: u64) -> Rc<Ongoing> {
    let run = find().filter(|run| run.id == id);
    run.expect("used outside of its run: on another thread, or after the end of the run")
}

pub(super) fn is_current(id: u64) -> bool {
    find().is_some_and(|run| run.id == id)
}

/// The run that the calling thread is in, if it is in one.
pub(super) fn find() -> Option<Rc<Ongoing>> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// The calling thread is in the run until this is dropped.
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
            // Relaxed: a number of one's own.
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

    /// A number for a task that is made now.
    pub(super) fn spawn(&self) -> u64 {
        self.spawned.set(self.spawned.get() + 1);
        let task = self.spawned.get();
        self.note(task, What::Spawned);
        task
    }

    /// Something has happened to a task.
    pub(super) fn note(&self, task: u64, what: What) {
        let at_ns = antiphon_sim::now();
        let by = match thread().checked_sub(1) {
            None => By::Outside,
            Some(worker) if worker < self.crew.workers() => By::Worker(worker),
            Some(_) => By::Timers,
        };
        self.schedule.borrow_mut().push(at_ns, by, task, what);
    }

    /// Runs a part of a task, and notes how that ends. `rests` says, of the returned value, whether
    /// the task has more parts.
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

/// The number of the calling thread.
pub(super) fn thread() -> usize {
    Sim::thread().0 as usize - 1
}

/// Lets others go first, perhaps.
pub(super) fn linger() {
    const USUAL_NS: u64 = 500;
    const LONG_NS: u64 = 20_000;
    think(if Sim::random().is_multiple_of(8) { LONG_NS } else { USUAL_NS });
}

/// The value that a task has panicked with. Unless a caller asks for it, it is the run's failure.
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

/// The text of a panic.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic whose payload is not text".to_owned())
}
