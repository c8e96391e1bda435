//! Which queues a policy has looked at when it is asked for a task of other workers.

use core::cell::Cell;

use super::policy::QueuesOf;
use crate::lines::Lines;

/// The queues of all workers, and whose was looked at last.
pub(super) struct Asked<'a, Q> {
    queues: &'a [Lines<Q>],
    last: Cell<usize>,
}

impl<'a, Q> Asked<'a, Q> {
    pub(super) fn new(queues: &'a [Lines<Q>]) -> Self {
        Self { queues, last: Cell::new(usize::MAX) }
    }

    /// `None`: no queue was looked at.
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
