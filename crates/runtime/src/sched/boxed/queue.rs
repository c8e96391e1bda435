//! The queue of a policy that is chosen at run time.

use alloc::boxed::Box;
use core::any::Any;

use antiphon_sync::queue::{Full, Item, Stolen, WorkQueue};

use crate::sched::policy::QueuesOf;

/// The queue of a worker, for any policy.
pub struct AnyQueue(Box<dyn Queue>);

/// A queue behind dynamic dispatch.
trait Queue: Send + Sync {
    /// # Safety
    ///
    /// See [`WorkQueue::push`].
    unsafe fn push(&self, item: Item) -> Result<(), Full>;
    /// # Safety
    ///
    /// See [`WorkQueue::keeps_last`].
    unsafe fn keeps_last(&self) -> bool;
    /// # Safety
    ///
    /// See [`WorkQueue::own_count`].
    unsafe fn own_count(&self) -> u64;
    /// # Safety
    ///
    /// See [`WorkQueue::pop_back`].
    unsafe fn pop_back(&self) -> Option<Item>;
    /// # Safety
    ///
    /// See [`WorkQueue::pop_front`].
    unsafe fn pop_front(&self) -> Option<Item>;
    /// # Safety
    ///
    /// See [`WorkQueue::share`].
    unsafe fn share(&self) -> bool;
    /// # Safety
    ///
    /// See [`WorkQueue::steal_into`]; the queues have the same type.
    unsafe fn steal_into(&self, mine: &AnyQueue, share: &mut dyn FnMut(u64) -> u64) -> Stolen;
    fn is_empty(&self) -> bool;
    fn count(&self) -> u64;
    fn as_any(&self) -> &dyn Any;
}

impl<Q: WorkQueue + Send + Sync + 'static> Queue for Q {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        // SAFETY: the caller's contract, here and below.
        unsafe { WorkQueue::push(self, item) }
    }

    unsafe fn keeps_last(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { WorkQueue::keeps_last(self) }
    }

    unsafe fn own_count(&self) -> u64 {
        // SAFETY: as in `push`.
        unsafe { WorkQueue::own_count(self) }
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        unsafe { WorkQueue::pop_back(self) }
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        unsafe { WorkQueue::pop_front(self) }
    }

    unsafe fn share(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { WorkQueue::share(self) }
    }

    unsafe fn steal_into(&self, mine: &AnyQueue, share: &mut dyn FnMut(u64) -> u64) -> Stolen {
        // SAFETY: as in `push`.
        unsafe { WorkQueue::steal_into(self, mine.known(), share) }
    }

    fn is_empty(&self) -> bool {
        WorkQueue::is_empty(self)
    }

    fn count(&self) -> u64 {
        WorkQueue::count(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl WorkQueue for AnyQueue {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        // SAFETY: the caller's contract, here and below.
        unsafe { self.0.push(item) }
    }

    unsafe fn keeps_last(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.0.keeps_last() }
    }

    unsafe fn own_count(&self) -> u64 {
        // SAFETY: as in `push`.
        unsafe { self.0.own_count() }
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        unsafe { self.0.pop_back() }
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        unsafe { self.0.pop_front() }
    }

    unsafe fn share(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.0.share() }
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        let mut share = Some(share);
        // A queue calls it once.
        let mut once = |there| share.take().map_or(1, |share| share(there));
        // SAFETY: as in `push`.
        unsafe { self.0.steal_into(mine, &mut once) }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn count(&self) -> u64 {
        self.0.count()
    }
}

/// The queues of a crew, seen as queues of type `Q`.
pub(super) struct Boxed<'a>(pub(super) &'a dyn QueuesOf<AnyQueue>);

impl<Q: 'static> QueuesOf<Q> for Boxed<'_> {
    fn count(&self) -> usize {
        self.0.count()
    }

    fn of(&self, worker: usize) -> &Q {
        self.0.of(worker).known()
    }
}

impl AnyQueue {
    pub(super) fn new(queue: impl WorkQueue + Send + Sync + 'static) -> Self {
        Self(Box::new(queue))
    }

    pub(super) fn known<Q: 'static>(&self) -> &Q {
        self.0.as_any().downcast_ref().expect("the queues of a crew are of its policy")
    }
}
