//! A process-shared barrier.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedBarrier;

use crate::deadline_after;

/// Blocks threads of any processes until a given number have arrived; it can be used any number of
/// times. It takes 8 bytes. Memory that is all zero holds a barrier for one thread.
///
/// A thread that is killed before it arrives never arrives, and leaves the others waiting: use
/// [`wait_for`], which gives up. A thread that is killed while it waits has arrived.
///
/// A process may unmap the barrier once its own threads have returned. The memory may be reused
/// once all threads of all processes have returned.
///
/// [`wait_for`]: Self::wait_for
#[repr(transparent)]
pub struct Barrier(SharedBarrier<Linux>);

/// The result of [`Barrier::wait`].
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// Creates a barrier for `threads` threads, to be written into shared memory; 0 is the same as
    /// 1.
    ///
    /// # Panics
    ///
    /// If `threads` is above 65 535.
    #[must_use]
    pub const fn new(threads: u32) -> Self {
        Self(SharedBarrier::new(threads))
    }

    /// Blocks until all threads of the round have arrived, including the caller. Everything that
    /// each thread did before its call happens before the return of all of them.
    pub fn wait(&self) -> BarrierWaitResult {
        BarrierWaitResult(self.0.wait())
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout` and returns `None`; the caller
    /// then counts as not arrived.
    pub fn wait_for(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        self.0.wait_until(deadline_after(timeout)).map(BarrierWaitResult)
    }
}

impl BarrierWaitResult {
    /// Returns whether the caller is the leader of its round: exactly one thread of each round is.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.0).finish()
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("threads", &self.0.parties()).finish_non_exhaustive()
    }
}
