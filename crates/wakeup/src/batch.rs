//! The batches of actions that a CPU runs, counted, so that other CPUs can wait for the end of one.
//!
//! - BATCH-1: what a CPU stores before a fence and [`Batch::wait`] is seen by all later batches; a
//!   batch that may not have seen it has ended when that returns.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Atomics};

/// Shows that its holder runs in a batch, as [`Table::run`](crate::table::Table::run) needs.
#[derive(Debug)]
pub struct Running(());

/// The number of batches that a CPU has begun, plus the number that it has ended: odd while it runs
/// one.
pub struct Batch<A: Atomics>(A::U64);

impl<A: Atomics> Batch<A> {
    /// The count of a CPU that has run no batch.
    pub const NEW: Self = Self(A::U64::ZERO);

    /// Runs a batch. Called by the CPU itself, with interrupts off.
    #[inline]
    pub fn run(&self, actions: impl FnOnce(&Running)) {
        // Relaxed: only this CPU writes it.
        let begun = self.0.load(Relaxed).wrapping_add(1);
        // Release: what the last batch did, for a CPU that waits for its end and finds this value
        // already; pairs with the acquires in `wait`.
        self.0.store(begun, Release);
        // BATCH-1: pairs with the fence before `wait`.
        A::fence(SeqCst);
        actions(&Running(()));
        // Release: what the actions did; pairs with the acquires in `wait`.
        self.0.store(begun.wrapping_add(1), Release);
    }

    /// Waits until the batch that runs now has ended, if one runs. The caller has passed a
    /// sequentially consistent fence (BATCH-1), and is in no batch.
    pub fn wait(&self) {
        // Acquire, both: what the batch did; pairs with the release in `run`.
        let seen = self.0.load(Acquire);
        if seen % 2 == 1 {
            self.0.wait_while(Acquire, |now| now == seen);
        }
    }
}
