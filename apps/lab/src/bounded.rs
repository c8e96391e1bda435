//! Scheduling schemes for benchmarks in which the number of waiting tasks is bounded.

use antiphon_platform::Platform;
use antiphon_runtime::sched::{Order, Others, Own, Policy, Queues, Scheme, Spread};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

/// A scheme without a queue for tasks that a worker has no room for: the worker that made such a
/// task runs it.
pub struct Bounded<O, S, K>(pub Scheme<O, S, K>);

// SAFETY: holds for the inner scheme, to which all but `overflow` is delegated; that one returns
// the task.
unsafe impl<P: Platform, O: Order, S: Spread, K: Queues> Policy<P> for Bounded<O, S, K> {
    type Queue = K::Queue<P>;
    type State = O::State;

    fn queue(&self) -> K::Queue<P> {
        Policy::<P>::queue(&self.0)
    }

    fn pop(&self, own: &Own<'_, K::Queue<P>>, state: &mut O::State) -> Option<Item> {
        Policy::<P>::pop(&self.0, own, state)
    }

    fn steal(
        &self,
        own: &Own<'_, K::Queue<P>>,
        state: &mut O::State,
        others: &Others<'_, K::Queue<P>>,
    ) -> Stolen {
        Policy::<P>::steal(&self.0, own, state, others)
    }

    fn overflow(&self, _: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        Err(Full(task))
    }
}
