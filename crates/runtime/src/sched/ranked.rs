//! Policies by rank: earliest deadline first, and priorities that grow with age.

use antiphon_platform::{Clock, Platform};
use antiphon_sync::queue::{Full, Item, Lot, RankedQueue, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};

/// The task with the least key is next, among the tasks of all workers and those from outside.
///
/// All workers take from one [`RankedQueue`]. With one shard the order is exact; with two shards
/// per worker they contend seldom, and take tasks that are nearly first.
///
/// ```
/// use antiphon_platform::Platform;
/// use antiphon_runtime::sched::{Aging, Deadlines, Ranked};
///
/// fn policies<P: Platform>(workers: usize) -> (Ranked<P, Deadlines>, Ranked<P, Aging>) {
///     // Those without a deadline are due after a second.
///     let deadlines = Ranked::new(Deadlines { usual_ns: 1_000_000_000 }, 1, 1 << 16);
///     // Each level is as urgent as the one before was 10 ms ago.
///     let levels = Aging { level_ns: 10_000_000, usual: 2 };
///     (deadlines, Ranked::new(levels, 2 * workers, 1 << 12))
/// }
/// # let _ = policies::<antiphon_linux::Linux>(2);
/// ```
pub struct Ranked<P: Platform, K> {
    key: K,
    tasks: RankedQueue<P>,
}

/// The keys by which tasks are ordered.
pub trait Key: Send + Sync {
    /// Returns the key of a task that is ready at `now_ns`, from its rank if it has one. The least
    /// key is next.
    fn key(&self, rank: Option<u64>, now_ns: impl FnOnce() -> u64) -> u64;
}

/// A rank is a deadline, in nanoseconds of the monotonic clock: the earliest first.
///
/// Starvation-free if deadlines advance with time; an endless stream of tasks whose deadlines have
/// long passed starves the others.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// The time from when a task is ready until it is due, if it has no deadline, in nanoseconds.
    pub usual_ns: u64,
}

impl Key for Deadlines {
    fn key(&self, rank: Option<u64>, now_ns: impl FnOnce() -> u64) -> u64 {
        rank.unwrap_or_else(|| now_ns().saturating_add(self.usual_ns))
    }
}

/// A rank is a level of priority, 0 the most urgent; each level is worth `level_ns`. A task is
/// overtaken only by tasks that become ready within that time per level by which they are above it.
/// So it is starvation-free.
#[derive(Clone, Copy, Debug)]
pub struct Aging {
    /// How much older a task must be to go first, per level, in nanoseconds.
    pub level_ns: u64,
    /// The level of a task without a rank.
    pub usual: u64,
}

impl Key for Aging {
    fn key(&self, rank: Option<u64>, now_ns: impl FnOnce() -> u64) -> u64 {
        let age = rank.unwrap_or(self.usual).saturating_mul(self.level_ns);
        now_ns().saturating_add(age)
    }
}

impl<P: Platform, K: Key> Ranked<P, K> {
    /// Creates a policy with `shards` shards, with room for `capacity` tasks in each.
    ///
    /// # Panics
    ///
    /// See [`RankedQueue::new`].
    pub fn new(key: K, shards: usize, capacity: usize) -> Self {
        Self { key, tasks: RankedQueue::new(shards, capacity) }
    }

    fn put(&self, task: Item, rank: Option<u64>) -> Result<(), Full> {
        let key = self.key.key(rank, || P::now(Clock::Monotonic));
        self.tasks.push(task, key, &mut lot::<P>())
    }

    fn take(&self) -> Option<Item> {
        self.tasks.pop(&mut lot::<P>())
    }
}

fn lot<P: Platform>() -> Lot {
    Lot::new(P::random().into())
}

// SAFETY: each task goes into one queue, and tasks come only out of queues.
unsafe impl<P: Platform, K: Key> Policy<P> for Ranked<P, K> {
    type Queue = ();
    type State = ();

    fn queue(&self) {}

    fn push(
        &self,
        _: &Own<'_, ()>,
        (): &mut (),
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        self.put(task, rank)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.put(task, rank).or_else(|Full(task)| shared.push(task))
    }

    fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    fn take_left(&self) -> Option<Item> {
        self.take()
    }

    fn pop(&self, _: &Own<'_, ()>, (): &mut ()) -> Option<Item> {
        self.take()
    }

    fn steal(&self, _: &Own<'_, ()>, (): &mut (), _: &Others<'_, ()>) -> Stolen {
        self.take().map_or(Stolen::Empty, Stolen::Got)
    }
}
