//! Tasks that are cheaper than a wake-up: the thread that makes such a task runs it at once.

use antiphon_platform::{Budget, Clock, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};

/// A wrapper of a policy that shares a worker's tasks only once the worker makes many.
///
/// While a worker makes tasks less often than one per `wake_ns`, which is about the time of a
/// wake-up, the policy has no room for them. So the worker runs each task at once: no worker is
/// woken, and no cache line goes to another CPU. When it has made tasks faster than that for
/// `wake_ns`, its tasks go to its queue, as the wrapped policy decides. The worker also runs tasks
/// at once that find no room there.
///
/// For tasks that are shorter than `wake_ns`: a long one delays all other tasks of its maker, even
/// if other workers have nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Lazy<Y> {
    policy: Y,
    wake_ns: u64,
}

/// The state of a worker.
#[derive(Debug, Default)]
pub struct Made<S> {
    state: S,
    /// When the worker made its last task.
    last_ns: u64,
    /// For how long the worker has made tasks fast.
    fast_ns: u64,
}

impl<Y> Lazy<Y> {
    /// Creates the policy for a machine on which a wake-up costs `wake_ns` nanoseconds.
    pub const fn new(policy: Y, wake_ns: u64) -> Self {
        Self { policy, wake_ns }
    }

    /// Returns whether the worker, which makes a task at `now`, has not made many tasks fast.
    fn is_few<S>(&self, made: &mut Made<S>, now: u64) -> bool {
        let gap = now.saturating_sub(made.last_ns);
        made.last_ns = now;
        made.fast_ns = if gap < self.wake_ns { made.fast_ns.saturating_add(gap) } else { 0 };
        made.fast_ns < self.wake_ns
    }
}

// SAFETY: the wrapped policy's contract.
unsafe impl<P: Platform, Y: Policy<P>> Policy<P> for Lazy<Y> {
    type Queue = Y::Queue;
    type State = Made<Y::State>;

    fn queue(&self) -> Y::Queue {
        self.policy.queue()
    }

    fn push(
        &self,
        own: &Own<'_, Y::Queue>,
        made: &mut Self::State,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        if self.is_few(made, P::now(Clock::Monotonic)) {
            return Err(Full(task));
        }
        self.policy.push(own, &mut made.state, task, rank)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.policy.submit(shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        self.policy.has_tasks()
    }

    fn take_left(&self) -> Option<Item> {
        self.policy.take_left()
    }

    fn pop(&self, own: &Own<'_, Y::Queue>, made: &mut Self::State) -> Option<Item> {
        self.policy.pop(own, &mut made.state)
    }

    fn steal(
        &self,
        own: &Own<'_, Y::Queue>,
        made: &mut Self::State,
        others: &Others<'_, Y::Queue>,
    ) -> Stolen {
        self.policy.steal(own, &mut made.state, others)
    }

    /// Always refused: the maker of the task runs it.
    fn overflow(&self, _: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        Err(Full(task))
    }

    fn idle(&self) -> Budget {
        self.policy.idle()
    }
}

#[cfg(test)]
mod tests {
    use antiphon_linux::Linux;

    use super::*;
    use crate::sched::{Crew, Lifo, Put, Scheme, Share, Steal};

    /// Returns whether the worker's own queue accepted each of three tasks, and how many it
    /// refused.
    fn made(wake_ns: u64) -> ([bool; 3], u64) {
        let scheme = Scheme::new(Lifo, Steal { share: Share::Half });
        let crew = Crew::<Linux, _>::new(Lazy::new(scheme, wake_ns), 1, 8);
        let mut worker = crew.worker(0).expect("a seat");
        let item = |number: u64| Item::new(8 * (512 + number)).expect("a word for an item");
        let kept = [1, 2, 3].map(|number| worker.push(item(number), Put::PLAIN).is_ok());
        let left = kept.iter().filter(|&&kept| kept).count();
        assert!((0..left).all(|_| worker.try_next_task().is_some()));
        assert_eq!(worker.try_next_task(), None);
        (kept, crew.stats().refused)
    }

    #[test]
    fn few_tasks_are_their_makers_and_many_are_shared() {
        assert_eq!(made(u64::MAX), ([false; 3], 3), "never fast for so long");
        assert_eq!(made(0), ([true; 3], 0), "no wake is to be spared");
    }
}
