//! Back-pressure on request: tasks for which the pool has no room are handed back.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::thread;

use antiphon_linux::Linux;
use antiphon_runtime::sched::{Put, Room};
use antiphon_runtime::task::Task;

use super::blocks::Blocks;
use super::{JoinHandle, Policy, Pool};
use crate::debug::by_name;

/// A task that a pool has refused because it has no room. If it is dropped, the task is not run.
pub struct Refused<T> {
    task: Task<Linux>,
    handle: JoinHandle<T>,
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Queues a task as [`spawn`](Self::spawn) does, but hands it back if there is no room. The
    /// caller can then try again later, drop it, run it, or give it to another pool.
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
    /// The task, if there is no room.
    #[track_caller]
    pub fn try_spawn<F, T>(&self, work: F) -> Result<JoinHandle<T>, Refused<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = Task::new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work)));
        let handle = JoinHandle(handle);
        match self.shared.put(self.shared.sampled(task, Location::caller()), Put::PLAIN) {
            Ok(()) => Ok(handle),
            Err(task) => Err(Refused { task, handle }),
        }
    }
}

impl<T> Refused<T> {
    /// Tries to queue the task again, on this pool or another.
    ///
    /// # Errors
    ///
    /// The task, if there is no room.
    pub fn try_spawn<Y>(self, pool: &Pool<Y>) -> Result<JoinHandle<T>, Self>
    where
        Y: Policy<Linux> + 'static,
    {
        let Self { task, handle } = self;
        match pool.shared.put(task, Put::PLAIN) {
            Ok(()) => Ok(handle),
            Err(task) => Err(Self { task, handle }),
        }
    }

    /// Blocks until `pool` has room for the task, and queues it. A worker of that pool runs other
    /// tasks while it waits, and this task if there are none; any other thread sleeps. So workers
    /// of two pools that wait for room in each other's pool may wait for ever.
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
        pool.shared.put_or_run(self.task, Put { room: Room::Wait, ..Put::PLAIN });
        self.handle
    }

    /// Runs the task on the calling thread.
    ///
    /// # Errors
    ///
    /// The payload of the task's panic.
    pub fn run(self) -> thread::Result<T> {
        self.task.run();
        self.handle.join()
    }
}

by_name!([T] Refused<T>, "Refused");
