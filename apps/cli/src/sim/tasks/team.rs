//! Who shares tasks: our crew, and what the dissertation had.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Platform;
use antiphon_runtime::sched::{Asked, Crew, End, Order, Others, Own, Policy, Spread, Worker};
use antiphon_sim::Sim;
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen, WorkQueue};

/// Workers that share tasks.
pub trait Team: 'static {
    /// One of them, on its thread.
    type Member<'a>: Member;

    /// The worker of a seat, which is free.
    fn member(&self, seat: usize) -> Self::Member<'_>;

    /// Has workers end that find nothing.
    fn close(&self);
}

/// A worker.
pub trait Member {
    /// Puts a task in.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn push(&mut self, task: Item) -> Result<(), Full>;

    /// The task to be run next; waits for one. `None`: it is over.
    fn next(&mut self) -> Option<Item>;

    /// What it does before it tries again to put in, where there was no room: perhaps a task.
    fn meanwhile(&mut self) -> Option<Item>;
}

/// What thieves have done. It is the experiment's, and costs no simulated time.
#[derive(Debug, Default)]
pub struct Tally {
    pub attempts: AtomicU64,
    pub hits: AtomicU64,
}

/// A queue that counts.
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
        // SAFETY: the caller's promise, here and below.
        unsafe { self.queue.push(item) }
    }

    unsafe fn keeps_last(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.queue.keeps_last() }
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        // SAFETY: as above.
        unsafe { self.queue.pop_back() }
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        // SAFETY: as above.
        unsafe { self.queue.pop_front() }
    }

    unsafe fn share(&self) -> bool {
        // SAFETY: as above.
        unsafe { self.queue.share() }
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        // SAFETY: as above.
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

/// A policy of an order and a spread, on queues of any kind that count.
pub struct Tallied<O, S, Q> {
    pub order: O,
    pub spread: S,
    pub queue: Box<dyn Fn() -> Q + Send + Sync>,
    pub tally: Arc<Tally>,
}

// SAFETY: tasks go into one queue each, and come out of queues.
unsafe impl<O, S, Q> Policy<Sim> for Tallied<O, S, Q>
where
    O: Order,
    S: Spread,
    Q: WorkQueue + Send + Sync,
{
    type Queue = Counted<Q>;
    type State = O::State;

    fn queue(&self) -> Counted<Q> {
        Counted::new((self.queue)(), &self.tally)
    }

    fn pop(&self, own: &Own<'_, Counted<Q>>, state: &mut O::State) -> Option<Item> {
        match self.order.next(state, &Asked::<Sim, _>::of(own)) {
            End::Back => own.pop_back(),
            End::Front => own.pop_front(),
        }
    }

    fn steal(
        &self,
        own: &Own<'_, Counted<Q>>,
        _: &mut O::State,
        others: &Others<'_, Counted<Q>>,
    ) -> Stolen {
        self.spread.steal(own, others, Sim::random)
    }

    /// The spawner runs a task itself.
    fn overflow(&self, _: &RelaxedQueue<Sim>, task: Item) -> Result<(), Full> {
        Err(Full(task))
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
    fn push(&mut self, task: Item) -> Result<(), Full> {
        self.push(task)
    }

    fn next(&mut self) -> Option<Item> {
        self.next_task()
    }

    /// One of its own: it is as if it had run it instead of making another.
    fn meanwhile(&mut self) -> Option<Item> {
        self.try_next_task()
    }
}
