//! Teams that share tasks: our pool's registry, and the dissertation's scheduler.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Platform;
use antiphon_runtime::sched::{Crew, Policy, Put, Queues, Worker};
use antiphon_sim::Sim;
use antiphon_sync::queue::{Full, Item, Stolen, WorkQueue};

/// Workers that share tasks.
pub trait Team: 'static {
    /// A worker of the team, on its thread.
    type Member<'a>: Member;

    /// Returns the worker of a free seat.
    fn member(&self, seat: usize) -> Self::Member<'_>;

    /// Makes workers that find no task end.
    fn close(&self);
}

/// A worker.
pub trait Member {
    /// Pushes a task of this stage.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn push(&mut self, task: Item, stage: u64) -> Result<(), Full>;

    /// Returns the next task to run, after waiting for one if needed. `None` when the run is over.
    fn next(&mut self) -> Option<Item>;

    /// What a member does before it retries a push for which there was no room; may return a task.
    fn meanwhile(&mut self) -> Option<Item>;
}

/// Counts of thieves' work. They belong to the experiment, and take no simulated time.
#[derive(Debug, Default)]
pub struct Tally {
    pub attempts: AtomicU64,
    pub hits: AtomicU64,
}

/// A queue that counts attempts to steal.
pub struct Counted<Q> {
    queue: Q,
    tally: Arc<Tally>,
}

impl<Q> Counted<Q> {
    pub fn new(queue: Q, tally: &Arc<Tally>) -> Self {
        Self { queue, tally: Arc::clone(tally) }
    }
}

impl<Q: WorkQueue> WorkQueue for Counted<Q> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        // SAFETY: the caller keeps the contract of this method, here and below.
        unsafe { self.queue.push(item) }
    }

    unsafe fn keeps_last(&self) -> bool {
        // SAFETY: the caller keeps the contract, as in `push`.
        unsafe { self.queue.keeps_last() }
    }

    unsafe fn own_count(&self) -> u64 {
        // SAFETY: the caller keeps the contract, as in `push`.
        unsafe { self.queue.own_count() }
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        // SAFETY: the caller keeps the contract, as in `push`.
        unsafe { self.queue.pop_back() }
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        // SAFETY: the caller keeps the contract, as in `push`.
        unsafe { self.queue.pop_front() }
    }

    unsafe fn share(&self) -> bool {
        // SAFETY: the caller keeps the contract, as in `push`.
        unsafe { self.queue.share() }
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        // SAFETY: the caller keeps the contract, as in `push`.
        let stolen = unsafe { self.queue.steal_into(&mine.queue, share) };
        self.tally.attempts.fetch_add(1, Relaxed);
        self.tally.hits.fetch_add(matches!(stolen, Stolen::Got(_)).into(), Relaxed);
        stolen
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn count(&self) -> u64 {
        self.queue.count()
    }
}

/// Queues of a kind, wrapped to count.
pub struct Counting<K> {
    pub queues: K,
    pub tally: Arc<Tally>,
}

// SAFETY: `K` makes the inner queues, and its contract holds.
unsafe impl<K: Queues> Queues for Counting<K> {
    type Queue<P: Platform> = Counted<K::Queue<P>>;

    fn queue<P: Platform>(&self) -> Counted<K::Queue<P>> {
        Counted::new(self.queues.queue(), &self.tally)
    }
}

impl<Y: Policy<Sim> + 'static> Team for Crew<Sim, Y> {
    type Member<'a> = Worker<'a, Sim, Y>;

    fn member(&self, seat: usize) -> Worker<'_, Sim, Y> {
        self.worker(seat).expect("each has a seat of its own")
    }

    fn close(&self) {
        self.close();
    }
}

impl<Y: Policy<Sim>> Member for Worker<'_, Sim, Y> {
    fn push(&mut self, task: Item, stage: u64) -> Result<(), Full> {
        self.push(task, Put { rank: Some(stage), ..Put::PLAIN })
    }

    fn next(&mut self) -> Option<Item> {
        self.next_task()
    }

    /// Takes one of its own tasks, as if it had run that one instead of making another.
    fn meanwhile(&mut self) -> Option<Item> {
        self.try_next_task()
    }
}
