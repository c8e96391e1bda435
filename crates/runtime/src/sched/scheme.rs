//! Policies made of three parts: the order in which a worker runs its tasks, how tasks spread, and
//! the queue that holds a worker's tasks.

use core::marker::PhantomData;

use antiphon_platform::{Clock, Platform};
use antiphon_sync::queue::{Blocks, Deque, Item, Stolen, WorkQueue};

use super::order::{Ask, End, Order};
use super::policy::{Others, Own, Policy};
use super::spread::Spread;

/// A policy made of an order and a spread, with a queue for each worker: by default a [`Deque`].
///
/// ```
/// use antiphon_runtime::sched::{InBlocks, Lifo, Neighbours, Scheme, Share};
///
/// let near = Neighbours { range: 13, share: Share::Half };
/// let policy = Scheme::new(Lifo, near).capacity(128, 128);
/// let many_cores = Scheme::new(Lifo, near).queues(InBlocks::<16>::default());
/// # let _ = (policy, many_cores);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Scheme<O, S, K = Deques> {
    order: O,
    spread: S,
    queues: K,
}

/// The kind of queue that holds a worker's tasks.
///
/// # Safety
///
/// Each queue is new and empty, and hands out each task that was put in once: workers run what they
/// find there.
pub unsafe trait Queues: Send + Sync {
    /// The type of the queues.
    type Queue<P: Platform>: WorkQueue + Send + Sync + 'static;

    /// Returns an empty queue.
    fn queue<P: Platform>(&self) -> Self::Queue<P>;
}

/// A [`Deque`], in which other workers find each task at once.
#[derive(Clone, Copy, Debug)]
pub struct Deques {
    /// Room for this many tasks at first.
    pub capacity: usize,
    /// Room for at most this many tasks.
    pub most: usize,
}

/// A queue of [`Blocks`]: other workers find a block when it is full. So a worker checks once in
/// `SIZE` tasks whether to wake another worker, and a thief takes half of the blocks. For many
/// cores and many short tasks.
///
/// Only the worker can run the tasks of the block that it is filling. A long task delays the tasks
/// that it, or one before it, has made, even if other workers have nothing to do; and a task that
/// waits for one of them by other means than the worker's waits for ever.
/// [`Worker::share`](super::Worker::share) lets other workers find these tasks.
#[derive(Clone, Copy, Debug)]
pub struct InBlocks<const SIZE: usize = 16> {
    /// The maximum number of blocks that other workers find.
    pub blocks: usize,
}

// SAFETY: the queue is a new one.
unsafe impl Queues for Deques {
    type Queue<P: Platform> = Deque<P>;

    fn queue<P: Platform>(&self) -> Deque<P> {
        Deque::new(self.capacity, self.most)
    }
}

// SAFETY: the queue is a new one.
unsafe impl<const SIZE: usize> Queues for InBlocks<SIZE> {
    type Queue<P: Platform> = Blocks<P, SIZE>;

    fn queue<P: Platform>(&self) -> Blocks<P, SIZE> {
        Blocks::new(self.blocks)
    }
}

/// Room for 256 tasks at first, and for at most a million.
impl Default for Deques {
    fn default() -> Self {
        Self { capacity: 256, most: 1 << 20 }
    }
}

/// Room for at most a million tasks.
impl<const SIZE: usize> Default for InBlocks<SIZE> {
    fn default() -> Self {
        Self { blocks: (1 << 20) / SIZE }
    }
}

impl<O, S> Scheme<O, S> {
    /// Each worker has room for 256 tasks at first, and for at most a million.
    pub const fn new(order: O, spread: S) -> Self {
        Self { order, spread, queues: Deques { capacity: 256, most: 1 << 20 } }
    }

    /// Each worker has room for `capacity` tasks at first, and for at most `most`.
    #[must_use]
    pub fn capacity(self, capacity: usize, most: usize) -> Self {
        self.queues(Deques { capacity, most })
    }

    /// Sets the kind of queue that holds each worker's tasks.
    #[must_use]
    pub fn queues<K: Queues>(self, queues: K) -> Scheme<O, S, K> {
        Scheme { order: self.order, spread: self.spread, queues }
    }
}

// SAFETY: each task goes into one queue, and tasks come only out of queues.
unsafe impl<P: Platform, O: Order, S: Spread, K: Queues> Policy<P> for Scheme<O, S, K> {
    type Queue = K::Queue<P>;
    type State = O::State;

    fn queue(&self) -> K::Queue<P> {
        self.queues.queue()
    }

    fn pop(&self, own: &Own<'_, K::Queue<P>>, state: &mut O::State) -> Option<Item> {
        match self.order.next(state, &Asked::<P, _>::of(own)) {
            End::Back => own.pop_back(),
            End::Front => own.pop_front(),
        }
    }

    fn steal(
        &self,
        own: &Own<'_, K::Queue<P>>,
        _: &mut O::State,
        others: &Others<'_, K::Queue<P>>,
    ) -> Stolen {
        self.spread.steal(own, others, P::random)
    }
}

/// Answers the queries of a worker's order, for a queue of any kind.
pub struct Asked<'a, 'b, P, Q> {
    own: &'a Own<'b, Q>,
    platform: PhantomData<P>,
}

impl<'a, 'b, P: Platform, Q: WorkQueue> Asked<'a, 'b, P, Q> {
    /// For the worker with the queue `own`.
    pub fn of(own: &'a Own<'b, Q>) -> Self {
        Self { own, platform: PhantomData }
    }
}

impl<P: Platform, Q: WorkQueue> Ask for Asked<'_, '_, P, Q> {
    #[inline]
    fn random(&self) -> u32 {
        P::random()
    }

    #[inline]
    fn tasks(&self) -> u64 {
        self.own.count()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        P::now(Clock::Monotonic)
    }
}
