//! The barrier: blocks threads until a given number have arrived, as in the standard library.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::wait;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;

/// Blocks threads until a given number have arrived; can be used any number of times. It takes 32
/// bytes. If a thread was in a call while another thread forked, make a new barrier in the child;
/// see [`Event`](crate::Event).
///
/// ```
/// static ALL: antiphon::Barrier = antiphon::Barrier::new(3);
///
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| {
///             // What each does by itself.
///             if ALL.wait().is_leader() {
///                 // What one of them does then.
///             }
///         });
///     }
/// });
/// ```
#[repr(transparent)]
pub struct Barrier(wait::Barrier<Linux>);

/// The result of [`Barrier::wait`].
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// Creates a barrier for `threads` threads; 0 is the same as 1.
    ///
    /// # Panics
    ///
    /// If `threads` does not fit in a `u32`.
    #[must_use]
    pub const fn new(threads: usize) -> Self {
        assert!(threads <= u32::MAX as usize, "a barrier is for at most 2^32 - 1 threads");
        Self(wait::Barrier::new(threads as u32))
    }

    /// Blocks until all threads that the barrier is for have arrived, including the caller. All
    /// their earlier operations happen before the return of each of these calls.
    pub fn wait(&self) -> BarrierWaitResult {
        may_be_ready();
        BarrierWaitResult(self.0.wait())
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout` and returns `None`: then it is
    /// as if the caller had not arrived.
    pub fn wait_for(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        may_be_ready();
        self.0.wait_until(deadline_after(timeout)).map(BarrierWaitResult)
    }
}

impl BarrierWaitResult {
    /// Returns whether the caller is the leader of its round. Each round has exactly one leader.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("threads", &self.0.parties()).finish_non_exhaustive()
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.0).finish()
    }
}
