//! The mutex's part in [moving](super::moved) waiters of a condition variable into its queue.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::abandoned;
use super::contended::Contended;
use super::fair::Patience;
use super::form::Form;
use super::moved::Moved;
use super::mutex::ShflMutex;
use super::queue::Place;
use super::status;
use super::turn::{Stands, Wait};
use super::words::Words;
use crate::policy::Policy;
use crate::section;

impl<P: Platform, Q: Policy, F: Form> ShflMutex<P, Q, F> {
    /// Prepares the caller's node to be moved into this queue. Does nothing if the backstop may
    /// make the caller leave the node there, and the caller has already left too many nodes behind.
    pub(crate) fn invite(&self, bits: u32) {
        if F::BACKSTOP_NS != 0 && !abandoned::thread_may_leave_one::<P>() {
            return;
        }
        let Some(place) = Place::<P>::at(bits) else { return };
        place.note(Words::policy(self));
        Patience::<F>::begin(place.node);
        let tail = core::ptr::from_ref(&self.tail).expose_provenance();
        // Relaxed, all three: published by the lock of the list.
        place.node.batch.store(0, Relaxed);
        place.node.wants.store(0, Relaxed);
        place.node.queue.store(tail as u64, Relaxed);
    }

    /// Acquires the lock for a waiter that was moved into its queue; blocks until the waiter has
    /// it.
    ///
    /// The mutex must be the one that the waiter named when it began to wait.
    pub fn lock_moved(&self, moved: Moved) {
        let place = Place::<P>::at(moved.0.bits());
        let wait = place.map_or(Wait::Lost, |me| {
            status::arrive(me.node);
            self.wait_in_queue(me, &Stands::First, None, Contended::untold(self))
        });
        if wait != Wait::Acquired {
            // This is the child of a fork that came in between: the queue has no waiters.
            return self.lock();
        }
        section::begin::<P>();
    }
}
