//! Back-pressure for those who choose it: a task that the pool has no room for.

use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::thread;

use antiphon_linux::Linux;
use antiphon_runtime::task::Task;

use super::blocks::Blocks;
use super::{JoinHandle, Policy, Pool};

/// A task that was refused: dropped, it is not run.
pub struct Refused<T> {
    task: Task<Linux>,
    handle: JoinHandle<T>,
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// As [`spawn`](Self::spawn), for those who would rather do something else than run the task
    /// here: try again later, drop it, or give it to another pool.
    ///
    /// ```
    /// use antiphon::pool::Pool;
    ///
    /// let pool = Pool::new(2)?;
    /// let returned = match pool.try_spawn(|| 6 * 7) {
    ///     Ok(handle) => handle.join(),
    ///     Err(refused) => refused.run(),
    /// };
    /// assert_eq!(returned.unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no room: the task.
    #[track_caller]
    pub fn try_spawn<F, T>(&self, work: F) -> Result<JoinHandle<T>, Refused<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = Task::new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work)));
        let handle = JoinHandle(handle);
        match self.shared.put(task, Location::caller()) {
            Ok(()) => Ok(handle),
            Err(task) => Err(Refused { task, handle }),
        }
    }
}

impl<T> Refused<T> {
    /// Tries again, with this pool or another.
    ///
    /// # Errors
    ///
    /// If there is no room: the task.
    pub fn try_spawn<Y>(self, pool: &Pool<Y>) -> Result<JoinHandle<T>, Self>
    where
        Y: Policy<Linux> + 'static,
    {
        let Self { task, handle } = self;
        match pool.shared.put_again(task) {
            Ok(()) => Ok(handle),
            Err(task) => Err(Self { task, handle }),
        }
    }

    /// Waits until the pool, this or another, has room for it. Sleeps; a worker of that pool runs
    /// others of its tasks meanwhile, and this one if it has none. So workers of two pools that
    /// wait for room in each other's may wait for ever.
    ///
    /// ```
    /// use antiphon::pool::Pool;
    ///
    /// let pool = Pool::builder().threads(1).room(2).build()?;
    /// let mut sum = 0;
    /// let numbers = (0..100).map(|number| {
    ///     pool.try_spawn(move || number).unwrap_or_else(|refused| refused.wait(&pool))
    /// });
    /// numbers.for_each(|number| sum += number.join().unwrap());
    /// assert_eq!(sum, 4950);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait<Y>(self, pool: &Pool<Y>) -> JoinHandle<T>
    where
        Y: Policy<Linux> + 'static,
    {
        pool.shared.put_waiting(self.task);
        self.handle
    }

    /// Runs it here.
    ///
    /// # Errors
    ///
    /// What it has panicked with.
    pub fn run(self) -> thread::Result<T> {
        self.task.run();
        self.handle.join()
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refused")
    }
}
