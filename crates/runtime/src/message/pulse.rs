//! The pulse of a mailbox: whether its owner is running actions, and who that is.
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 0–31 | `thread` | who runs a batch of actions, 0 if nobody does |
//! | 32–63 | `batch` | the number of the batch |
//!
//! - PULSE-1: who has withdrawn an action, and then [waited](Pulse::wait), comes after all batches
//!   that may have seen the action; those that begin later see that it was withdrawn.
//!
//! That is an epoch a mailbox, on a line of its own: to run an action writes to no line that others
//! write to. A count in the action's entry would, and counts of many mailboxes' deliveries would
//! meet there.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Budget, Platform};
use antiphon_sync::nap;

/// One mailbox's.
#[repr(C, align(64))]
pub(super) struct Pulse<P: Platform>(P::U64);

const THREAD: u64 = u32::MAX as u64;
const NUMBER: u64 = 1 << 32;
/// How long who waits spins first, and then sleeps between two looks.
const SPIN: Budget = Budget::ns(2_000);
const NAP_NS: u64 = 100_000;

impl<P: Platform> Pulse<P> {
    pub(super) const NEW: Self = Self(P::U64::ZERO);

    /// The owner begins a batch.
    pub(super) fn begin(&self) -> Beat<'_, P> {
        // Relaxed: only the owner writes it.
        let number = self.0.load(Relaxed) & !THREAD;
        // Release: the batch before, if who waits sees this one; pairs with the acquire in `wait`.
        self.0.store(number | u64::from(P::thread().0), Release);
        // PULSE-1: either we see that an action was withdrawn, or who did that sees our batch.
        // Pairs with the fence in `Actions::unregister`.
        P::fence(SeqCst);
        Beat(self)
    }

    /// Whether the caller is running a batch.
    pub(super) fn is_callers(&self) -> bool {
        // Relaxed: if it is so, the caller has written it.
        self.0.load(Relaxed) & THREAD == u64::from(P::thread().0)
    }

    /// PULSE-1: waits until the batch is over that is under way. Spins for a moment and then sleeps
    /// and looks.
    pub(super) fn wait(&self) {
        // Acquire, here and below: what the batch did; pairs with the releases of `begin` and of
        // the end of a beat.
        let seen = self.0.load(Acquire);
        if seen & THREAD == 0 {
            return;
        }
        while self.0.spin_while(Acquire, SPIN, |now| now == seen).is_err() {
            nap::nap::<P>(NAP_NS);
        }
    }
}

/// A batch of the owner's, which ends when this is dropped.
pub(super) struct Beat<'a, P: Platform>(&'a Pulse<P>);

impl<P: Platform> Drop for Beat<'_, P> {
    fn drop(&mut self) {
        // Relaxed: only the owner writes it.
        let next = (self.0.0.load(Relaxed) & !THREAD).wrapping_add(NUMBER);
        // Release: what the actions did; pairs with the acquire in `wait`.
        self.0.0.store(next, Release);
    }
}
