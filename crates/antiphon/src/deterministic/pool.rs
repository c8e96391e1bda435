//! The pool of a run, and the handles of its tasks.

use std::thread;

use antiphon_runtime::sched::{Put, Stats};
use antiphon_runtime::task::{Handle, Task};
use antiphon_sim::Sim;

use super::local::Local;
use super::run::{self, Caught, linger};
use crate::debug::by_name;

/// The pool of a run, like [`pool::Pool`](crate::pool::Pool). It is `Copy`: copy it into the tasks
/// that use it.
///
/// # Panics
///
/// Every method panics outside of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    run: u64,
}

/// Waits for a task. If the handle is dropped, the task still runs. If the task panics and is not
/// joined by the end of the run, the run fails.
///
/// # Panics
///
/// Every method panics outside of the run.
pub struct JoinHandle<T>(Local<Handle<Sim, Result<T, Caught>>>);

impl Pool {
    pub(super) fn of(run: u64) -> Self {
        Self { run }
    }

    #[track_caller]
    pub(super) fn run(self) -> std::rc::Rc<run::Ongoing> {
        run::of(self.run)
    }

    /// Spawns `work` as a task. Runs it at once if there is no room.
    pub fn spawn<F, T>(self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_any(work, None)
    }

    /// Like [`spawn`](Self::spawn), for a task with a rank. The policy defines what a rank means.
    pub fn spawn_ranked<F, T>(self, rank: u64, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_any(work, Some(rank))
    }

    fn spawn_any<F, T>(self, work: F, rank: Option<u64>) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let run = self.run();
        let number = run.spawn();
        let work = move || run::current().perform(number, work, |_| false);
        let (task, handle) = Task::new(work);
        run.put_or_run(task, Put { rank, ..Put::PLAIN });
        linger();
        JoinHandle::new(handle)
    }

    /// Counts what the workers have done so far.
    #[must_use]
    pub fn stats(self) -> Stats {
        self.run().crew.stats()
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn threads(self) -> usize {
        self.run().crew.workers()
    }
}

impl<T> JoinHandle<T> {
    pub(super) fn new(handle: Handle<Sim, Result<T, Caught>>) -> Self {
        Self(Local::new(handle))
    }

    pub(super) fn handle(&mut self) -> &mut Handle<Sim, Result<T, Caught>> {
        self.0.get_mut()
    }

    /// Waits until the task is done, and returns its result. A worker runs other tasks meanwhile.
    ///
    /// # Errors
    ///
    /// The payload of the panic, if the task panicked.
    pub fn join(self) -> thread::Result<T> {
        let mut handle = self.0.take();
        run::current().wait_for(&handle.awaited());
        or_lost(handle.take())
    }

    /// Returns whether the task is done.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.get().is_done()
    }
}

/// Returns the value that a task has returned, or its panic; an error if the task was dropped.
pub(super) fn or_lost<T>(returned: Option<Result<T, Caught>>) -> thread::Result<T> {
    match returned {
        Some(returned) => returned.map_err(Caught::into_panic),
        None => Err(Box::new("the task was dropped")),
    }
}

by_name!([] Pool, "Pool");

by_name!([T] JoinHandle<T>, "JoinHandle");
