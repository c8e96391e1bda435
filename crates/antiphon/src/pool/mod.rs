//! Thread pools that run tasks, in an order that a policy decides.
//!
//! ```
//! use antiphon::pool::Pool;
//!
//! let pool = Pool::new(4)?;
//! let answer = pool.spawn(|| 6 * 7);
//! let mut squares = [0; 100];
//! pool.scope(|scope| {
//!     for (number, square) in squares.iter_mut().enumerate() {
//!         scope.spawn(move || *square = number * number);
//!     }
//! });
//! assert_eq!(squares[9], 81);
//! assert_eq!(answer.join().unwrap(), 42);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A [policy], which is a value, decides which task a worker runs next. The default is
//! [`Standard`].
//!
//! A closure is run by one thread, from its beginning to its end. A future is polled by any thread,
//! one at a time ([`Pool::spawn_future`]). A worker that waits for a task, its pool's or another's,
//! or at the end of a scope, runs other tasks of its pool while it waits; any other thread sleeps.
//! A task that waits for something else, other than by `await`, should say so with [`blocking`];
//! long tasks are noticed if the pool has [patience](Builder::patience). In both cases a [backup
//! thread](Builder::spares) takes the worker's place, as long as there is one.
//!
//! # What to know
//!
//! - **No room.** A task that a worker spawns goes to the worker's own queue or else to the shared
//!   one; a task from outside goes to the shared one. If there is no room, the thread that spawns
//!   the task runs it at once. So no task is lost, and a thread that spawns tasks faster than they
//!   are run is slowed down. Hold no lock that a task takes while you spawn it; or use
//!   [`Pool::try_spawn`], which hands the task back, or waits for room on request
//!   ([`Refused::wait`]). At most 64 tasks are nested this way; then room is made.
//! - **Panics.** A panic stays in its task: [`JoinHandle::join`] returns it, and a scope re-raises
//!   it when all its tasks are done. The panic of a task whose handle was dropped is lost, except
//!   for the message of the panic hook.
//! - **Memory** of small tasks that have ended is kept for later tasks, up to 64 KiB for each
//!   thread that spawns, runs or waits for tasks, until the thread ends.
//! - **Policies that panic.** A policy that panics when it is given a task aborts the process,
//!   because it is unknown whether the task was queued. A policy that panics when it is asked for a
//!   task ends its worker, or the task that waits for another on that worker. Other workers may
//!   steal the tasks in that worker's queue, if the policy steals; if not, a thread that waits for
//!   such a task waits for ever, and so does a thread that drops the pool.
//! - **Dropping a pool** runs the tasks that are queued, and those that they spawn; then its
//!   threads end. The drop waits for that, unless one of these threads drops the pool.

mod blocks;
mod builder;
mod future;
mod handle;
mod here;
mod hogs;
mod join;
mod ledger;
mod look;
#[cfg(feature = "name_hogs")]
mod naming;
mod places;
pub mod policy;
pub mod recording;
mod refused;
mod sample;
mod scope;
mod shared;
mod spare;
mod stuck;
mod watch;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_runtime::sched::Put;
use antiphon_runtime::task::Task;

pub use antiphon_runtime::sched::Stats;
pub use builder::{Builder, Cpu, cpus};
pub use handle::JoinHandle;
pub use hogs::Hog;
pub use join::join;
pub use refused::Refused;
pub use scope::{Scope, wait_all};
pub use stuck::Stuck;
pub use watch::blocking;

use crate::fiber::census::Census;
use crate::observe::Caller;
pub use crate::observe::Trace;
use blocks::Blocks;
use policy::{Lifo, Policy, Scheme, Steal, Swap};
use shared::Shared;

/// The default policy of a [`Pool`]: a worker runs its newest task first, whose data is in the
/// cache, and thieves take the older half of a worker's tasks.
pub type Standard = Scheme<Lifo, Steal>;

/// A pool of threads that run tasks.
///
/// Dropping it runs all queued tasks, and waits for the threads to end.
pub struct Pool<Y: Policy<Linux> + 'static = Standard> {
    shared: Arc<Shared<Y>>,
}

impl Pool {
    /// Starts a pool of `threads` threads with the policy [`Standard`].
    ///
    /// # Errors
    ///
    /// If a thread can't be started.
    ///
    /// # Panics
    ///
    /// If `threads` is 0, or 2²¹ or more together with the backup threads.
    pub fn new(threads: usize) -> io::Result<Self> {
        Self::with_policy(threads, Standard::default())
    }
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Starts a pool of `threads` threads that follow `policy`.
    ///
    /// ```
    /// use antiphon::pool::{Pool, policy::{Fifo, Scheme, Share, Steal}};
    ///
    /// let policy = Scheme::new(Fifo, Steal { share: Share::Half }).capacity(128, 128);
    /// let pool = Pool::with_policy(2, policy)?;
    /// assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a thread can't be started. Threads that were started have ended.
    ///
    /// # Panics
    ///
    /// If `threads` is 0, or 2²¹ or more together with the backup threads.
    pub fn with_policy(threads: usize, policy: Y) -> io::Result<Self> {
        Pool::builder().threads(threads).build_with(policy)
    }

    /// Queues `work` for a worker. Does not block, except if there is no room: then the caller runs
    /// `work` at once. In a pool of [fibers](Builder::fibers) room is made instead; a caller that
    /// is a fiber waits until there is room.
    #[track_caller]
    pub fn spawn<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = Task::new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work)));
        self.shared.spawn(task, Location::caller(), Put::PLAIN);
        JoinHandle(handle)
    }

    /// Queues many tasks, as [`spawn`](Self::spawn) does, and then wakes as many resting workers as
    /// there are tasks, all at once instead of one after the other.
    ///
    /// ```
    /// use antiphon::pool::Pool;
    ///
    /// let pool = Pool::new(4)?;
    /// let squares = pool.spawn_many((0..100).map(|number| move || number * number));
    /// let sum: i32 = squares.into_iter().map(|square| square.join().unwrap()).sum();
    /// assert_eq!(sum, 328_350);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_many<F, T>(&self, works: impl IntoIterator<Item = F>) -> Vec<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let make = |work| {
            let (task, handle) = Task::new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work)));
            (task, JoinHandle(handle))
        };
        let (tasks, handles) = works.into_iter().map(make).unzip();
        self.shared.spawn_many(tasks, Location::caller());
        handles
    }

    /// Queues a task with a rank, as [`spawn`](Self::spawn) does. The policy decides what a rank
    /// is: a deadline or a level ([`Ranked`](policy::Ranked)), or a stage
    /// ([`Staged`](policy::Staged)). Other policies ignore it.
    ///
    /// ```
    /// use antiphon::pool::{Pool, policy::{Aging, Ranked}};
    ///
    /// // Level 0 is the most urgent; a level is worth a millisecond of waiting.
    /// let policy = Ranked::new(Aging { usual: 1, level_ns: 1_000_000 }, 1, 1 << 16);
    /// let pool = Pool::with_policy(2, policy)?;
    /// let (report, answer) = (pool.spawn_ranked(3, || "later"), pool.spawn_ranked(0, || 42));
    /// assert_eq!((answer.join().unwrap(), report.join().unwrap()), (42, "later"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_ranked<F, T>(&self, rank: u64, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = Task::new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work)));
        self.shared.spawn(task, Location::caller(), Put { rank: Some(rank), ..Put::PLAIN });
        JoinHandle(handle)
    }

    /// Queues a task without a handle, on behalf of `caller`. `work` must not panic.
    pub(crate) fn begin(&self, how: Put<'_>, caller: Caller, work: impl FnOnce() + Send + 'static) {
        self.shared.spawn(Task::detached_in(Blocks, work), caller, how);
    }

    /// Reports the states of the pool's fibers, and where up to `most` waiting fibers of each
    /// thread wait. Print it when a program makes no progress. A thread that does not answer within
    /// `patience` has been in one task for that long. Empty if tasks are not
    /// [fibers](Builder::fibers).
    ///
    /// Blocks until all threads have answered or `patience` is over. A waiting fiber takes its own
    /// backtrace, which takes 10 to 100 µs and keeps its thread busy meanwhile.
    ///
    /// ```
    /// use antiphon::{Event, fiber, pool::Pool};
    /// use std::time::Duration;
    ///
    /// static NEVER_SET: Event = Event::new();
    ///
    /// fn waits_here() {
    ///     NEVER_SET.wait();
    /// }
    ///
    /// // SAFETY: no fiber waits while it makes a thread-local.
    /// let pool = unsafe { Pool::builder().threads(1).fibers(fiber::STACK_BYTES) }.build()?;
    /// let (one, other) = (pool.spawn(waits_here), pool.spawn(waits_here));
    /// let census = loop {
    ///     let census = pool.fibers(10, Duration::from_secs(10));
    ///     if census.waiting() == 2 {
    ///         break census.to_string();
    ///     }
    /// };
    /// assert!(census.contains("2 wait:") && census.contains("waits_here"), "{census}");
    /// # NEVER_SET.set();
    /// # NEVER_SET.wait_for(Duration::ZERO);
    /// # while !one.is_finished() || !other.is_finished() { NEVER_SET.set(); }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn fibers(&self, most: usize, patience: Duration) -> Census {
        let now = Instant::now();
        // A time that can't be represented counts as never.
        let until = now.checked_add(patience).unwrap_or(now + Duration::from_secs(1 << 30));
        self.shared.census(most, until)
    }

    /// Returns whether the pool runs its tasks as [fibers](Builder::fibers).
    #[must_use]
    pub fn has_fibers(&self) -> bool {
        self.shared.stacks.is_some()
    }

    /// Counts what the pool's workers have done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Makes all tasks that the calling task has spawned visible to other workers. Some policies,
    /// such as [`InBlocks`](policy::InBlocks), keep some of them for the worker itself. Call it
    /// before a long computation.
    pub fn share(&self) {
        self.shared.share();
    }

    /// Returns the number of threads that run tasks at a time, not counting those in long tasks.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.crew.workers()
    }
}

impl Pool<Swap<Linux>> {
    /// Puts the policy with this number in charge, from each worker's next decision on. Returns
    /// `false` if there is no such policy. Does not block. See [`Swap`].
    ///
    /// ```
    /// use antiphon::pool::{Pool, policy::{BoxedPolicy, Swap}};
    ///
    /// let [short, fair] = ["lifo", "fifo"].map(|name| name.parse::<BoxedPolicy<_>>().unwrap());
    /// let pool = Pool::with_policy(2, Swap::new([short, fair]))?;
    /// // From now on, for tasks that become ready.
    /// assert!(pool.put_in_charge(1));
    /// assert_eq!(pool.spawn(|| 42).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use = "there may be no such policy"]
    pub fn put_in_charge(&self, policy: usize) -> bool {
        self.shared.crew.policy().put_in_charge(policy)
    }

    /// Returns the number of the policy in charge.
    #[must_use]
    pub fn in_charge(&self) -> usize {
        self.shared.crew.policy().in_charge()
    }
}

impl<Y: Policy<Linux> + 'static> Drop for Pool<Y> {
    fn drop(&mut self) {
        self.shared.close();
        self.shared.bench.join_all();
    }
}

impl<Y: Policy<Linux> + 'static> fmt::Debug for Pool<Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}
