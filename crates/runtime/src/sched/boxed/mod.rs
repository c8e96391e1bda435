//! Policies that are chosen at run time.

mod queue;

use alloc::boxed::Box;
use core::any::Any;

use antiphon_platform::{Budget, Platform};
use antiphon_sync::queue::{Full, Item, RelaxedQueue, Stolen};

use super::policy::{Others, Own, Policy};
use queue::Boxed;

pub use queue::AnyQueue;

/// A policy whose type is not known to the workers: it decides like the policy in the box, at the
/// price of a virtual call for each decision, and of one allocation for each worker.
///
/// ```
/// use antiphon_platform::Platform;
/// use antiphon_runtime::sched::{BoxedPolicy, Fifo, Lifo, Scheme, Share, Steal};
///
/// fn named<P: Platform>(name: &str) -> Option<BoxedPolicy<P>> {
///     let half = Steal { share: Share::Half };
///     match name {
///         "fifo" => Some(BoxedPolicy::new(Scheme::new(Fifo, half))),
///         "lifo" => Some(BoxedPolicy::new(Scheme::new(Lifo, half))),
///         _ => None,
///     }
/// }
/// # assert!(named::<antiphon_linux::Linux>("fifo").is_some());
/// ```
pub struct BoxedPolicy<P: Platform>(Box<dyn Object<P>>);

/// The state of a worker, for any policy; empty at first.
#[derive(Default)]
pub struct AnyState(Option<Box<dyn Any + Send>>);

impl<P: Platform> BoxedPolicy<P> {
    /// Puts a policy into a box.
    pub fn new<Y>(policy: Y) -> Self
    where
        Y: Policy<P, Queue: 'static, State: 'static> + 'static,
    {
        Self(Box::new(policy))
    }
}

/// A policy behind dynamic dispatch.
trait Object<P: Platform>: Send + Sync {
    fn queue(&self) -> AnyQueue;
    fn push(
        &self,
        own: &Own<'_, AnyQueue>,
        state: &mut AnyState,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full>;
    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full>;
    fn has_tasks(&self) -> bool;
    fn take_left(&self) -> Option<Item>;
    fn pop(&self, own: &Own<'_, AnyQueue>, state: &mut AnyState) -> Option<Item>;
    fn steal(
        &self,
        own: &Own<'_, AnyQueue>,
        state: &mut AnyState,
        others: &Others<'_, AnyQueue>,
    ) -> Stolen;
    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full>;
    fn idle(&self) -> Budget;
}

impl<P: Platform, Y> Object<P> for Y
where
    Y: Policy<P, Queue: 'static, State: 'static>,
{
    fn queue(&self) -> AnyQueue {
        AnyQueue::new(Policy::queue(self))
    }

    fn push(
        &self,
        own: &Own<'_, AnyQueue>,
        state: &mut AnyState,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        Policy::push(self, &own.part(AnyQueue::known), state.known(), task, rank)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        Policy::submit(self, shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        Policy::has_tasks(self)
    }

    fn take_left(&self) -> Option<Item> {
        Policy::take_left(self)
    }

    fn pop(&self, own: &Own<'_, AnyQueue>, state: &mut AnyState) -> Option<Item> {
        Policy::pop(self, &own.part(AnyQueue::known), state.known())
    }

    fn steal(
        &self,
        own: &Own<'_, AnyQueue>,
        state: &mut AnyState,
        others: &Others<'_, AnyQueue>,
    ) -> Stolen {
        let queues = Boxed(others.queues);
        let others = Others::new(&queues, others.me);
        Policy::steal(self, &own.part(AnyQueue::known), state.known(), &others)
    }

    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        Policy::overflow(self, shared, task)
    }

    fn idle(&self) -> Budget {
        Policy::idle(self)
    }
}

// SAFETY: the boxed policy's contract.
unsafe impl<P: Platform> Policy<P> for BoxedPolicy<P> {
    type Queue = AnyQueue;
    type State = AnyState;

    fn queue(&self) -> AnyQueue {
        self.0.queue()
    }

    fn push(
        &self,
        own: &Own<'_, AnyQueue>,
        state: &mut AnyState,
        task: Item,
        rank: Option<u64>,
    ) -> Result<(), Full> {
        self.0.push(own, state, task, rank)
    }

    fn submit(&self, shared: &RelaxedQueue<P>, task: Item, rank: Option<u64>) -> Result<(), Full> {
        self.0.submit(shared, task, rank)
    }

    fn has_tasks(&self) -> bool {
        self.0.has_tasks()
    }

    fn take_left(&self) -> Option<Item> {
        self.0.take_left()
    }

    fn pop(&self, own: &Own<'_, AnyQueue>, state: &mut AnyState) -> Option<Item> {
        self.0.pop(own, state)
    }

    fn steal(
        &self,
        own: &Own<'_, AnyQueue>,
        state: &mut AnyState,
        others: &Others<'_, AnyQueue>,
    ) -> Stolen {
        self.0.steal(own, state, others)
    }

    fn overflow(&self, shared: &RelaxedQueue<P>, task: Item) -> Result<(), Full> {
        self.0.overflow(shared, task)
    }

    fn idle(&self) -> Budget {
        self.0.idle()
    }
}

impl AnyState {
    fn known<S: Default + Send + 'static>(&mut self) -> &mut S {
        let state = self.0.get_or_insert_with(|| Box::new(S::default()));
        state.downcast_mut().expect("the states of a crew are of its policy")
    }
}
