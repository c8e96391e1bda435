//! The queues of one worker under several policies: one queue per policy.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};
use antiphon_sync::queue::{Full, Item, Stolen, WorkQueue};

use super::boxed::AnyQueue;
use super::policy::{Own, QueuesOf};

/// A worker's queues, one for each policy.
pub struct Several<P: Platform> {
    queues: Box<[AnyQueue]>,
    /// The queue that was last put in charge; used only by the worker.
    last: P::U32,
}

impl<'a, P: Platform> Own<'a, Several<P>> {
    /// Returns the worker's queue for a policy.
    pub(super) fn of(&self, policy: usize) -> Own<'a, AnyQueue> {
        self.part(|queues| &queues.queues[policy])
    }

    /// Makes this policy's queue the target of further pushes.
    pub(super) fn turn_to(&self, policy: usize) {
        let last = &self.queue.last;
        // Relaxed, both: only the worker uses it.
        if last.load(Relaxed) as usize != policy {
            last.store(policy as u32, Relaxed);
        }
    }
}

/// The queues of all workers for one policy.
pub(super) struct Parts<'a, P: Platform> {
    queues: &'a dyn QueuesOf<Several<P>>,
    it: usize,
}

impl<'a, P: Platform> Parts<'a, P> {
    pub(super) fn new(queues: &'a dyn QueuesOf<Several<P>>, it: usize) -> Self {
        Self { queues, it }
    }
}

impl<P: Platform> QueuesOf<AnyQueue> for Parts<'_, P> {
    fn count(&self) -> usize {
        self.queues.count()
    }

    fn of(&self, worker: usize) -> &AnyQueue {
        &self.queues.of(worker).queues[self.it]
    }
}

impl<P: Platform> Several<P> {
    pub(super) fn new(queues: Box<[AnyQueue]>) -> Self {
        Self { queues, last: P::U32::ZERO }
    }

    fn last(&self) -> &AnyQueue {
        // Relaxed: only the worker uses it.
        &self.queues[self.last.load(Relaxed) as usize]
    }
}

/// The queues as one: a task is put into the queue of the last policy, and is taken from any queue
/// that has one.
impl<P: Platform> WorkQueue for Several<P> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        // SAFETY: the caller's contract, here and below.
        unsafe { self.last().push(item) }
    }

    unsafe fn keeps_last(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.last().keeps_last() }
    }

    unsafe fn own_count(&self) -> u64 {
        // SAFETY: as in `push`.
        self.queues.iter().map(|queue| unsafe { queue.own_count() }).sum()
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        self.queues.iter().find_map(|queue| unsafe { queue.pop_back() })
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        // SAFETY: as in `push`.
        self.queues.iter().find_map(|queue| unsafe { queue.pop_front() })
    }

    unsafe fn share(&self) -> bool {
        let mut shared = true;
        for queue in &self.queues {
            // SAFETY: as in `push`.
            shared &= unsafe { queue.share() };
        }
        shared
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        let mut share = Some(share);
        let mut told = Stolen::Empty;
        for (queue, mine) in self.queues.iter().zip(&mine.queues) {
            if queue.is_empty() {
                continue;
            }
            let once = |there| share.take().map_or(1, |share| share(there));
            // SAFETY: as in `push`: ours has nothing in any of them.
            match unsafe { queue.steal_into(mine, once) } {
                Stolen::Empty => {}
                Stolen::Retry => told = Stolen::Retry,
                got @ Stolen::Got(_) => return got,
            }
        }
        told
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(AnyQueue::is_empty)
    }

    fn count(&self) -> u64 {
        self.queues.iter().map(AnyQueue::count).sum()
    }
}
