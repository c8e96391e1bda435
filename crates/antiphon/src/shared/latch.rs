//! The latch that processes share.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedLatch;

use super::Shared;
use crate::raw::deadline_after;

/// Opens when so many things are done, once and for all that wait, of any process. 8 bytes.
///
/// What a process was to count down that is killed before is never counted, and leaves the others
/// waiting: [`wait_for`](Self::wait_for) gives up.
///
/// ```
/// static DONE: antiphon::shared::Latch = antiphon::shared::Latch::new(2);
///
/// DONE.count_down(2);
/// DONE.wait();
/// ```
#[repr(transparent)]
pub struct Latch(SharedLatch<Linux>);

impl Latch {
    /// A latch that opens when `count` was counted down, to be written where processes share it; it
    /// is open if that is 0.
    ///
    /// # Panics
    ///
    /// If it is more than [`MAX_COUNT`](crate::MAX_COUNT).
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(SharedLatch::new(count))
    }

    /// Counts down by `step`, or by what is left if that is less. At zero, all that wait go on.
    pub fn count_down(&self, step: u32) {
        self.0.count_down(step);
    }

    /// Blocks until the latch is open.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`; says whether the latch is open.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.is_open() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Whether the latch is open. If so, what was done before it was counted down is visible.
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
