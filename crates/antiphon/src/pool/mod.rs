//! Pools of threads that run tasks, by a policy that is a value.
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
//! [`Scheme`] has the policies that are there, made of an [`Order`] and a [`Spread`]; one of your
//! own is a type:
//!
//! ```
//! use antiphon::generic::Linux;
//! use antiphon::pool::{Deque, Item, Others, Own, Policy, Pool, Stolen};
//!
//! /// The last first, and every eighth time the first.
//! struct Mostly;
//!
//! // SAFETY: tasks go into the worker's queue, and come out of queues.
//! unsafe impl Policy<Linux> for Mostly {
//!     type Queue = Deque<Linux>;
//!     /// How many tasks the worker has taken.
//!     type State = u32;
//!
//!     fn queue(&self) -> Deque<Linux> {
//!         Deque::new(128, 1 << 20)
//!     }
//!
//!     fn pop(&self, own: &Own<'_, Deque<Linux>>, taken: &mut u32) -> Option<Item> {
//!         *taken = taken.wrapping_add(1);
//!         if taken.is_multiple_of(8) { own.pop_front() } else { own.pop_back() }
//!     }
//!
//!     fn steal(
//!         &self,
//!         own: &Own<'_, Deque<Linux>>,
//!         _: &mut u32,
//!         others: &Others<'_, Deque<Linux>>,
//!     ) -> Stolen {
//!         others.try_each(0..others.count(), |victim| own.steal(victim, |there| there / 2))
//!     }
//! }
//!
//! let pool = Pool::with_policy(2, Mostly)?;
//! assert_eq!(pool.spawn(|| "run").join().unwrap(), "run");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A closure is run by one thread, from its beginning to its end; a future is polled by any, one at
//! a time ([`Pool::spawn_future`]). A worker that waits for a task, its pool's or another's, or at
//! the end of a scope, runs others of its pool meanwhile; any other thread sleeps. A task that
//! waits for something else, other than by `await`, says so with [`blocking`], and one that is long
//! the pool sees if it is to ([`Builder::patience`]): a [spare](Builder::spares) thread takes its
//! worker's place, as long as there is one.
//!
//! # What to know
//!
//! - **Where there is no room**, for a task of a worker's in its own queue and the shared one, or
//!   for one from outside in the shared one, whoever makes the task runs it at once. So nothing is
//!   lost, and who makes tasks faster than they are run is slowed down. So hold no lock that a task
//!   takes while you spawn it; or spawn by [`Pool::try_spawn`], which hands the task back, or waits
//!   for room if you say so ([`Refused::wait`]). No more than 64 are run so inside of one another;
//!   then room is made.
//! - **A panic** stays in its task: [`JoinHandle::join`] returns it, and a scope goes on with it
//!   when all its tasks are done. That of a task whose handle was dropped is lost but for the
//!   message of the panic hook.
//! - **Memory** of small tasks that have ended is kept for those to come: 64 KiB a thread at most,
//!   until it ends, of any thread that makes tasks, runs them or waits for them.
//! - **A policy that panics** when it is given a task ends the process: nobody knows where that is.
//!   One that panics when it is asked for one ends its worker, or the task that waits for another
//!   on it. What is in that worker's queue others may steal, if the policy has them; if it has not,
//!   who waits for it waits for ever, and so does who drops the pool.
//! - **A dropped pool** runs what is there, what these tasks make too, and then its threads end.
//!   That is waited for, unless it is one of them that drops it.

mod blocks;
mod builder;
mod by_place;
mod future;
mod here;
mod hogs;
mod join;
mod ledger;
mod look;
#[cfg(feature = "name_hogs")]
mod naming;
mod places;
mod recording;
mod refused;
mod sample;
mod scope;
mod shared;
mod spare;
mod stuck;
mod timed;
mod trace;
mod watch;

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_runtime::task::{Handle, Task};

pub use antiphon_runtime::flight::{Event, Found, LONG_NS, Sample, What};
pub use antiphon_runtime::sched::{
    Adaptive, Aging, Ask, BoxedPolicy, ByWeight, Deadlines, Deques, End, Fifo, InBlocks, Key, Lazy,
    Lifo, LifoSlot, Neighbours, Order, Others, Own, Policy, Queues, Ranked, Requests, Reverse,
    Scheme, Share, Spill, Spread, Staged, Stats, Steal, Stochastic, Swap, Switch, Tickets,
    UnknownPolicy, Victim,
};
pub use antiphon_runtime::task::Countdown;
pub use antiphon_sync::queue::{
    ChaseLev, Deque, Full, Item, MultiQueue, RankedQueue, RelaxedQueue, Slotted, Stolen, WorkQueue,
};
pub use builder::{Builder, Cpu, cpus};
pub use by_place::Spawned;
pub use hogs::{Hog, Trace};
pub use join::join;
pub use recording::{Latency, Recorded, Recording, Times};
pub use refused::Refused;
pub use scope::{Scope, wait_all};
pub use stuck::Stuck;
pub use timed::{Part, Span, Timed};
pub use watch::blocking;

pub(crate) use blocks::List;
pub(crate) use here::{Known, Notes, passes, run, wait_for};
pub(crate) use ledger::Account;

use crate::fiber::Census;
use blocks::Blocks;
use sample::Caller;
use shared::Shared;

/// What a [`Pool`] does if nothing else is said: the last task first, whose data is in the cache,
/// and others take half of what a worker has, the first ones.
pub type Standard = Scheme<Lifo, Steal>;

/// Threads that run tasks.
pub struct Pool<Y: Policy<Linux> + 'static = Standard> {
    shared: Arc<Shared<Y>>,
}

/// What to wait for a task by. Dropped, the task goes on.
pub struct JoinHandle<T>(Handle<Linux, thread::Result<T>>);

impl Pool {
    /// So many threads; see [`Standard`] for the policy.
    ///
    /// # Errors
    ///
    /// If a thread can't be started.
    ///
    /// # Panics
    ///
    /// If there are to be none, or 2²¹ or more with the spare ones.
    pub fn new(threads: usize) -> io::Result<Self> {
        Self::with_policy(threads, Standard::default())
    }
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// So many threads that follow a policy.
    ///
    /// ```
    /// use antiphon::pool::{Fifo, Pool, Scheme, Share, Steal};
    ///
    /// let policy = Scheme::new(Fifo, Steal { share: Share::Half }).capacity(128, 128);
    /// let pool = Pool::with_policy(2, policy)?;
    /// assert_eq!(pool.spawn(|| 1).join().unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If a thread can't be started; those that were started have ended.
    ///
    /// # Panics
    ///
    /// If there are to be none, or 2²¹ or more with the spare ones.
    pub fn with_policy(threads: usize, policy: Y) -> io::Result<Self> {
        Pool::builder().threads(threads).build_with(policy)
    }

    /// Has a worker run `work` some time. Where there is no room, runs it at once; or, if tasks are
    /// [fibers](Builder::fibers), makes room, and a fiber waits for some.
    #[track_caller]
    pub fn spawn<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (task, handle) = Task::new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work)));
        self.shared.put_or_run(task, Location::caller());
        JoinHandle(handle)
    }

    /// As [`spawn`](Self::spawn), of many: as many workers that rest are woken at once, when all
    /// are there, and not one after the other.
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
        self.shared.put_many(tasks, Location::caller());
        handles
    }

    /// As [`spawn`](Self::spawn), of a task that has a rank: a deadline, a level, a stage. What it
    /// is, the policy says ([`Ranked`], [`Staged`]); to others it is nothing.
    ///
    /// ```
    /// use antiphon::pool::{Aging, Pool, Ranked};
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
        if let Err(task) = self.shared.put_ranked(task, rank, Location::caller()) {
            self.shared.run_or_wait(task);
        }
        JoinHandle(handle)
    }

    /// Puts a task in, for that caller, that nobody waits for, and that must not panic. It is never
    /// refused: where there is no room, room is made.
    pub(crate) fn begin(
        &self,
        rank: Option<u64>,
        caller: Caller,
        work: impl FnOnce() + Send + 'static,
    ) {
        let task = Task::detached_in(Blocks, work);
        match rank {
            None => self.shared.put_always(task, caller),
            Some(rank) => {
                if let Err(task) = self.shared.put_ranked(task, rank, caller) {
                    self.shared.put_refused(task);
                }
            }
        }
    }

    /// What its fibers do, and where those wait that do, of `most` on each thread: to be printed
    /// where a program makes no progress. Threads that don't answer within `patience` are in one
    /// task for so long. Empty if its tasks are no [fibers](Builder::fibers).
    ///
    /// Blocks until all have answered. Fibers that wait say where by a backtrace of their own,
    /// which takes some 10 to 100 µs for each, and keeps their thread from others meanwhile.
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
    /// // SAFETY: no thread-local is made by what waits.
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
        // A time that can't be told is never.
        let until = now.checked_add(patience).unwrap_or(now + Duration::from_secs(1 << 30));
        self.shared.census(most, until)
    }

    /// As [`begin`](Self::begin), from outside: whatever the policy prefers, what a worker has
    /// comes before it.
    pub(crate) fn begin_behind(&self, caller: Caller, work: impl FnOnce() + Send + 'static) {
        self.shared.put_behind(Task::detached_in(Blocks, work), caller);
    }

    /// Whether its tasks are [fibers](Builder::fibers).
    #[must_use]
    pub fn has_fibers(&self) -> bool {
        self.shared.stacks.is_some()
    }

    /// What its workers have done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Has others find what the calling task has spawned, where the policy keeps some of it for the
    /// worker that it is on, as [`InBlocks`] does: before it does something that takes long.
    pub fn share(&self) {
        self.shared.share();
    }

    /// How many threads run tasks at a time, beside those in long ones.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.shared.crew.workers()
    }
}

impl Pool<Swap<Linux>> {
    /// Has the policy of this number decide, from each worker's next decision on; `false` if there
    /// is none. Does not block. See [`Swap`].
    ///
    /// ```
    /// use antiphon::pool::{BoxedPolicy, Pool, Swap};
    ///
    /// let [short, fair] = ["lifo", "fifo"].map(|name| name.parse::<BoxedPolicy<_>>().unwrap());
    /// let pool = Pool::with_policy(2, Swap::new([short, fair]))?;
    /// // For what is made ready from now on.
    /// assert!(pool.put_in_charge(1));
    /// assert_eq!(pool.spawn(|| 42).join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use = "there may be no such policy"]
    pub fn put_in_charge(&self, policy: usize) -> bool {
        self.shared.crew.policy().put_in_charge(policy)
    }

    /// The number of the policy that decides.
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

impl<T> JoinHandle<T> {
    /// Waits until the task is done, and returns what it has returned. A worker, of this pool or of
    /// another, runs other tasks of its own pool meanwhile.
    ///
    /// # Errors
    ///
    /// What the task has panicked with.
    pub fn join(mut self) -> thread::Result<T> {
        here::wait_for(&self.0.awaited());
        or_lost(self.0.take())
    }

    pub(crate) fn handle(&mut self) -> &mut Handle<Linux, thread::Result<T>> {
        &mut self.0
    }

    /// Whether the task is done: [`join`](Self::join) does not wait then.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_done()
    }
}

/// What a task has returned, if it has.
pub(crate) fn or_lost<T>(returned: Option<thread::Result<T>>) -> thread::Result<T> {
    returned.unwrap_or_else(|| Err(Box::new("the task was dropped") as Box<dyn Any + Send>))
}

impl<Y: Policy<Linux> + 'static> fmt::Debug for Pool<Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
