//! A process-shared latch.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedLatch;

use super::Shared;
use crate::deadline_after;

/// Opens once, when it has been counted down to zero, and releases all waiters of all processes. It
/// takes 8 bytes.
///
/// If a process is killed before it has counted down, the latch never opens, and the others keep
/// waiting: use [`wait_for`](Self::wait_for), which gives up.
///
/// ```
/// static DONE: antiphon_shared::Latch = antiphon_shared::Latch::new(2);
///
/// DONE.count_down(2);
/// DONE.wait();
/// ```
#[repr(transparent)]
pub struct Latch(SharedLatch<Linux>);

impl Latch {
    /// The largest count.
    pub const MAX_COUNT: u32 = antiphon_sync::wait::MAX_COUNT;

    /// Creates a latch that opens once `count` has been counted down, to be written into shared
    /// memory. It is open if `count` is 0.
    ///
    /// # Panics
    ///
    /// If `count` is above [`MAX_COUNT`](Self::MAX_COUNT).
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(SharedLatch::new(count))
    }

    /// Counts down by `step`, or by the rest if that is less. At zero, all waiters are released.
    pub fn count_down(&self, step: u32) {
        self.0.count_down(step);
    }

    /// Blocks until the latch is open.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns whether the latch is
    /// open.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.is_open() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Returns whether the latch is open. If it is, everything done before the counts is visible.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }
}

impl Shared for Latch {}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latch").field("left", &self.0.left()).finish()
    }
}
