//! Policies for what is measured: how many tasks wait is bounded.

use antiphon_platform::Platform;
use antiphon_runtime::sched::{Others, Own, Policy};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

/// A policy with no queue for what a worker has no room for: who has made it runs it.
pub struct Bounded<Y>(pub Y);

// SAFETY: as of the policy in it.
unsafe impl<P: Platform, Y: Policy<P>> Policy<P> for Bounded<Y> {
    type Queue = Y::Queue;
    type State = Y::State;

    fn queue(&self) -> Y::Queue {
        self.0.queue()
    }

    fn pop(&self, own: &Own<'_, Y::Queue>, state: &mut Y::State) -> Option<Item> {
        self.0.pop(own, state)
    }

    fn steal(
        &self,
        own: &Own<'_, Y::Queue>,
        state: &mut Y::State,
        others: &Others<'_, Y::Queue>,
    ) -> Stolen {
        self.0.steal(own, state, others)
    }

    fn overflow(&self, _: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        Err(Full(task))
    }
}
