//! The barrier that processes share.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedBarrier;

use crate::BarrierWaitResult;
use crate::raw::deadline_after;

/// Lets threads of any process go on when so many have come; to be used any number of times.
/// 8 bytes. Memory that is all zero holds one for a single thread.
///
/// Who is killed before it comes never comes, and leaves the others waiting: [`wait_for`] gives up.
/// Who is killed while it waits has come.
///
/// A process may unmap it once its own threads have returned; something else may be put in its
/// place once all have.
///
/// [`wait_for`]: Self::wait_for
#[repr(transparent)]
pub struct Barrier(SharedBarrier<Linux>);

impl Barrier {
    /// A barrier for `threads` threads, to be written where processes share it; 0 is the same as 1.
    ///
    /// # Panics
    ///
    /// If they are more than 65 535.
    #[must_use]
    pub const fn new(threads: u32) -> Self {
        Self(SharedBarrier::new(threads))
    }

    /// Blocks until as many threads have come as the barrier is for, the caller included. What each
    /// did before happens before what any of them does afterwards.
    pub fn wait(&self) -> BarrierWaitResult {
        BarrierWaitResult(self.0.wait())
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`: then it is as if the caller had not
    /// come.
    pub fn wait_for(&self, timeout: Duration) -> Option<BarrierWaitResult> {
        self.0.wait_until(deadline_after(timeout)).map(BarrierWaitResult)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("threads", &self.0.parties()).finish_non_exhaustive()
    }
}
