//! The broadcast that processes share.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedBroadcast;
pub use antiphon_sync::shared::SharedGeneration as Generation;

use super::Shared;
use crate::raw::deadline_after;

/// Tells all threads that wait, of any process, that something has happened. 4 bytes.
///
/// A thread asks [`now`](Self::now), looks whether it has to wait, and waits with what it was told:
/// what is sent in between is not lost. So this is the event count of processes too, for conditions
/// that stand in memory beside it. The sender wakes all sleepers itself, in one system call.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static WORK: antiphon::shared::Broadcast = antiphon::shared::Broadcast::new();
/// static TASKS: AtomicU32 = AtomicU32::new(0);
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         TASKS.store(1, Relaxed);
///         WORK.send();
///     });
///     loop {
///         let seen = WORK.now();
///         if TASKS.load(Relaxed) > 0 {
///             break;
///         }
///         WORK.wait(seen);
///     }
/// });
/// ```
#[repr(transparent)]
pub struct Broadcast(SharedBroadcast<Linux>);

impl Broadcast {
    /// Nothing was sent.
    #[must_use]
    pub const fn new() -> Self {
        Self(SharedBroadcast::NEW)
    }

    /// The present generation, to [wait](Self::wait) with. What was done before each send so far
    /// happens before the return.
    #[must_use]
    pub fn now(&self) -> Generation {
        self.0.now()
    }

    /// Ends the waits of all that wait with the present generation. A system call if anybody
    /// sleeps.
    pub fn send(&self) {
        self.0.send();
    }

    /// Blocks until something was sent that `seen` does not count; returns the generation by then.
    /// `seen` is of this broadcast. Sends are counted modulo 2³¹: that many in one sleep are none.
    pub fn wait(&self, seen: Generation) -> Generation {
        self.0.wait(seen)
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`: `None`.
    pub fn wait_for(&self, seen: Generation, timeout: Duration) -> Option<Generation> {
        self.0.wait_until(seen, Some(deadline_after(timeout)))
    }
}

impl Shared for Broadcast {}

impl Default for Broadcast {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast").field("now", &self.now()).finish()
    }
}
