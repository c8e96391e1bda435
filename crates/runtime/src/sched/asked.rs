//! The queue that a policy accessed last when it stole from other workers.

use core::cell::Cell;

use super::policy::QueuesOf;
use crate::lines::Lines;

/// The queues of all workers, and the one that was accessed last.
pub(super) struct Asked<'a, Q> {
    queues: &'a [Lines<Q>],
    last: Cell<usize>,
}

impl<'a, Q> Asked<'a, Q> {
    pub(super) fn new(queues: &'a [Lines<Q>]) -> Self {
        Self { queues, last: Cell::new(usize::MAX) }
    }

    /// Returns the worker whose queue was accessed last; `None` if none was.
    pub(super) fn last(&self) -> Option<u32> {
        u32::try_from(self.last.get()).ok()
    }
}

impl<Q> QueuesOf<Q> for Asked<'_, Q> {
    fn count(&self) -> usize {
        self.queues.len()
    }

    fn of(&self, worker: usize) -> &Q {
        self.last.set(worker);
        &self.queues[worker].0
    }
}
