//! Policies made of two parts: in which order a worker runs its tasks, and how tasks spread.

use core::marker::PhantomData;

use antiphon_platform::{Clock, Platform};
use antiphon_sync::queue::{Deque, Item, Stolen, WorkQueue};

use super::order::{Ask, End, Order};
use super::policy::{Others, Own, Policy};
use super::spread::Spread;

/// A policy of an order and a spread, on a [`Deque`] for each worker.
///
/// ```
/// use antiphon_runtime::sched::{Lifo, Neighbours, Scheme, Share};
///
/// let policy = Scheme::new(Lifo, Neighbours { range: 13, share: Share::Half }).capacity(128, 128);
/// # let _ = policy;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Scheme<O, S> {
    order: O,
    spread: S,
    capacity: usize,
    most: usize,
}

impl<O, S> Scheme<O, S> {
    /// Each worker has room for 256 tasks at first, and for a million at most.
    pub const fn new(order: O, spread: S) -> Self {
        Self { order, spread, capacity: 256, most: 1 << 20 }
    }

    /// Each worker has room for `capacity` tasks at first, and for `most` at most.
    #[must_use]
    pub fn capacity(self, capacity: usize, most: usize) -> Self {
        Self { capacity, most, ..self }
    }
}

impl<O: Default, S: Default> Default for Scheme<O, S> {
    fn default() -> Self {
        Self::new(O::default(), S::default())
    }
}

// SAFETY: tasks go into one queue each, and come out of queues.
unsafe impl<P: Platform, O: Order, S: Spread> Policy<P> for Scheme<O, S> {
    type Queue = Deque<P>;
    type State = O::State;

    fn queue(&self) -> Deque<P> {
        Deque::new(self.capacity, self.most)
    }

    fn pop(&self, own: &Own<'_, Deque<P>>, state: &mut O::State) -> Option<Item> {
        match self.order.next(state, &Asked::<P, _>::of(own)) {
            End::Back => own.pop_back(),
            End::Front => own.pop_front(),
        }
    }

    fn steal(
        &self,
        own: &Own<'_, Deque<P>>,
        _: &mut O::State,
        others: &Others<'_, Deque<P>>,
    ) -> Stolen {
        self.spread.steal(own, others, P::random)
    }
}

/// Tells a worker's order what it asks, of a queue of any kind.
pub struct Asked<'a, 'b, P, Q> {
    own: &'a Own<'b, Q>,
    platform: PhantomData<P>,
}

impl<'a, 'b, P: Platform, Q: WorkQueue> Asked<'a, 'b, P, Q> {
    /// Of the worker with this queue.
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
        self.own.queue.count()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        P::now(Clock::Monotonic)
    }
}
