//! The overflow queue of a policy, for tasks that do not fit in a worker's queue.

use antiphon_platform::{Budget, Platform};
use antiphon_sync::queue::{Full, Item, Lot, MultiQueue, RankedQueue, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};

/// A policy with an overflow queue, separate from the queue for tasks from outside, for tasks that
/// its workers have no room for. The queue has several shards, to reduce contention. All workers
/// take from it before they steal, and after every `EVERY` tasks, so that its tasks do not starve.
///
/// The dissertation has three overflow queues: a [locked](Self::locked) one, one without a lock,
/// and one of five shards. With one shard this is the second, which differs little from a policy
/// without an overflow queue.
pub struct Spill<P: Platform, Y> {
    policy: Y,
    spilt: Spilt<P>,
}

enum Spilt<P: Platform> {
    Free(MultiQueue<P>),
    /// A queue of one shard, by a rank that is the same for all: first in, first out.
    Locked(RankedQueue<P>),
}

/// Period, in tasks, at which a worker checks the overflow queue first.
const EVERY: u32 = 61;

impl<P: Platform, Y: Policy<P>> Spill<P, Y> {
    /// Creates the policy with `shards` shards, each with room for `capacity` tasks, rounded up to
    /// a power of two.
    ///
    /// # Panics
    ///
    /// If `shards` is 0, or `capacity` is above 2³¹.
    pub fn new(policy: Y, shards: usize, capacity: usize) -> Self {
        Self::onto(policy, MultiQueue::new(shards, capacity))
    }

    /// Builds the policy over the queue `spilt`, for example a queue whose number of shards
    /// [grows](MultiQueue::growing).
    ///
    /// # Panics
    ///
    /// If the queue is not empty.
    pub fn onto(policy: Y, spilt: MultiQueue<P>) -> Self {
        assert!(spilt.is_empty(), "the queue has tasks already: it must be empty");
        Self { policy, spilt: Spilt::Free(spilt) }
    }

    /// Creates the policy with one queue behind a lock, with room for `capacity` tasks, for
    /// comparison.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or above 2³¹.
    pub fn locked(policy: Y, capacity: usize) -> Self {
        Self { policy, spilt: Spilt::Locked(RankedQueue::new(1, capacity)) }
    }

    fn take(&self) -> Option<Item> {
        let lot = &mut Lot::new(P::random().into());
        match &self.spilt {
            Spilt::Free(queue) => queue.pop(lot),
            Spilt::Locked(queue) => queue.pop(lot),
        }
    }
}

// SAFETY: the wrapped policy's contract; a task that it has no room for goes into one queue, and
// comes out.
unsafe impl<P: Platform, Y: Policy<P>> Policy<P> for Spill<P, Y> {
    type Queue = Y::Queue;
    /// The policy's state, and how many tasks the worker has asked for.
    type State = (Y::State, u32);

    fn queue(&self) -> Y::Queue {
        self.policy.queue()
    }

    fn push(
        &self,
        own: &Own<'_, Y::Queue>,
        state: &mut Self::State,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        self.policy.push(own, &mut state.0, task, rank)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.policy.submit(shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        let is_empty = match &self.spilt {
            Spilt::Free(queue) => queue.is_empty(),
            Spilt::Locked(queue) => queue.is_empty(),
        };
        !is_empty || self.policy.has_tasks()
    }

    fn take_left(&self) -> Option<Item> {
        self.take().or_else(|| self.policy.take_left())
    }

    fn pop(&self, own: &Own<'_, Y::Queue>, (state, asked): &mut Self::State) -> Option<Item> {
        *asked = asked.wrapping_add(1);
        let first = asked.is_multiple_of(EVERY).then(|| self.take()).flatten();
        first.or_else(|| self.policy.pop(own, state)).or_else(|| self.take())
    }

    fn steal(
        &self,
        own: &Own<'_, Y::Queue>,
        state: &mut Self::State,
        others: &Others<'_, Y::Queue>,
    ) -> Stolen {
        match self.take() {
            Some(task) => Stolen::Got(task),
            None => self.policy.steal(own, &mut state.0, others),
        }
    }

    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        let lot = &mut Lot::new(P::random().into());
        let spilt = match &self.spilt {
            Spilt::Free(queue) => queue.push(task, lot),
            Spilt::Locked(queue) => queue.push(task, 0, lot),
        };
        spilt.or_else(|Full(task)| self.policy.overflow(shared, task))
    }

    fn idle(&self) -> Budget {
        self.policy.idle()
    }
}
