//! The pool of a run, and what to wait for its tasks by.

use std::fmt;
use std::thread;

use antiphon_runtime::sched::Stats;
use antiphon_runtime::task::{Handle, Task};
use antiphon_sim::Sim;

use super::local::Local;
use super::run::{self, Caught, linger};

/// The pool of a run: as [`pool::Pool`](crate::pool::Pool), to be copied into tasks that use it.
///
/// # Panics
///
/// Used outside of its run, each of its functions does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    run: u64,
}

/// What to wait for a task by. Dropped, the task goes on. If it panics and nobody has joined it
/// when the run is over, the run fails.
///
/// # Panics
///
/// Used outside of its run, each of its functions does.
pub struct JoinHandle<T>(Local<Handle<Sim, Result<T, Caught>>>);

impl Pool {
    pub(super) fn of(run: u64) -> Self {
        Self { run }
    }

    #[track_caller]
    pub(super) fn run(self) -> std::rc::Rc<run::Ongoing> {
        run::of(self.run)
    }

    /// Has a worker run `work` some time. Runs it at once if there is no room.
    pub fn spawn<F, T>(self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_any(work, None)
    }

    /// As [`spawn`](Self::spawn), of a task that has a rank: what that is, the policy says.
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
        run.put_or_run(task, rank);
        linger();
        JoinHandle::new(handle)
    }

    /// What its workers have done so far.
    #[must_use]
    pub fn stats(self) -> Stats {
        self.run().crew.stats()
    }

    /// How many workers there are.
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

    /// Waits until the task is done, and returns what it has returned. A worker runs other tasks
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// What the task has panicked with.
    pub fn join(self) -> thread::Result<T> {
        let mut handle = self.0.take();
        run::current().wait_for(&handle.awaited());
        or_lost(handle.take())
    }

    /// Whether the task is done.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.get().is_done()
    }
}

/// What a task has returned, if it has.
pub(super) fn or_lost<T>(returned: Option<Result<T, Caught>>) -> thread::Result<T> {
    match returned {
        Some(returned) => returned.map_err(Caught::into_panic),
        None => Err(Box::new("the task was dropped")),
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinHandle")
    }
}
