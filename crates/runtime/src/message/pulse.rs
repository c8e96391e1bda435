//! The pulse of a mailbox: whether its owner is running actions, and which task that is.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `batch` | number of begins and ends of batches of actions: odd during a batch |
//! | 8–15 | `task` | the task that runs the batch, by [`Platform::task`]; 0: none |
//!
//! - PULSE-1: a thread that has withdrawn an action, and then [waited](Pulse::wait), comes after
//!   all batches that may have seen the action; later batches see that it was withdrawn.
//! - PULSE-2: `task` names the caller if and only if the caller is in a batch: only the caller
//!   writes its name, and removes it. A fiber may continue its batch on another thread.
//!
//! This is one epoch per mailbox, on its own lines: running an action writes to no line that others
//! write to. A count in the action's entry would, and the deliveries of many mailboxes would
//! contend there.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Budget, Platform};
use antiphon_sync::nap;

/// The pulse of one mailbox.
#[repr(C, align(128))]
pub(super) struct Pulse<P: Platform> {
    batch: P::U64,
    task: P::U64,
}

/// How long a waiting thread first spins; then it sleeps for `NAP_NS` between two checks.
const SPIN: Budget = Budget::ns(2_000);
const NAP_NS: u64 = 100_000;

fn is_under_way(batch: u64) -> bool {
    batch % 2 == 1
}

impl<P: Platform> Pulse<P> {
    pub(super) const NEW: Self = Self { batch: P::U64::ZERO, task: P::U64::ZERO };

    /// Begins a batch of the owner.
    pub(super) fn begin(&self) -> Beat<'_, P> {
        // Relaxed: PULSE-2.
        self.task.store(P::task(), Relaxed);
        self.step();
        // PULSE-1: either the owner sees that an action was withdrawn, or the thread that did that
        // sees the batch. Pairs with the fence in `Actions::unregister`.
        P::fence(SeqCst);
        Beat(self)
    }

    /// Begins or ends a batch.
    fn step(&self) {
        // Relaxed: only the owner writes it.
        let next = self.batch.load(Relaxed).wrapping_add(1);
        // Release: the accesses of the actions of the batch that ends, or of the one before, if the
        // waiting thread sees this one; pairs with the acquires in `wait`.
        self.batch.store(next, Release);
    }

    /// Returns whether `task`, which is the caller's, is running a batch.
    pub(super) fn is_of(&self, task: u64) -> bool {
        // Relaxed: PULSE-2.
        self.task.load(Relaxed) == task
    }

    /// PULSE-1: waits until the present batch has ended. Spins for a moment, and then sleeps and
    /// checks periodically.
    pub(super) fn wait(&self) {
        // Acquire, here and below: the accesses of the batch; pairs with the release in `step`.
        let seen = self.batch.load(Acquire);
        if !is_under_way(seen) {
            return;
        }
        while self.batch.spin_while(Acquire, SPIN, |now| now == seen).is_err() {
            nap::nap::<P>(NAP_NS);
        }
    }
}

/// A batch of the owner, which ends when this is dropped.
pub(super) struct Beat<'a, P: Platform>(&'a Pulse<P>);

impl<P: Platform> Drop for Beat<'_, P> {
    fn drop(&mut self) {
        // Relaxed: PULSE-2.
        self.0.task.store(0, Relaxed);
        self.0.step();
    }
}
