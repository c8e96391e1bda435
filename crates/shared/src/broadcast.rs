//! A process-shared broadcast.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedBroadcast;
pub use antiphon_sync::shared::SharedGeneration as Generation;

use super::Shared;
use crate::deadline_after;

/// Tells all waiting threads, of any process, that something has happened. It takes 4 bytes.
///
/// A thread calls [`now`](Self::now), checks whether it must wait, and waits with that generation:
/// a send in between is not lost. So this also serves as an event count among processes, for
/// conditions in other shared memory. The sender wakes all sleepers itself, in one system call.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static WORK: antiphon_shared::Broadcast = antiphon_shared::Broadcast::new();
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
    /// Creates a broadcast without sends.
    #[must_use]
    pub const fn new() -> Self {
        Self(SharedBroadcast::NEW)
    }

    /// The current generation, to [wait](Self::wait) with. Everything before each earlier send
    /// happens before the return.
    #[must_use]
    pub fn now(&self) -> Generation {
        self.0.now()
    }

    /// Releases all threads that wait with the current generation. Makes a system call if a thread
    /// sleeps.
    pub fn send(&self) {
        self.0.send();
    }

    /// Blocks until a send that `seen` does not count; returns the generation then. `seen` must
    /// come from this broadcast. Sends are counted modulo 2³¹: exactly that many during one sleep
    /// look like none.
    pub fn wait(&self, seen: Generation) -> Generation {
        self.0.wait(seen)
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout` and returns `None`.
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
