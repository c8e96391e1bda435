//! The broadcast.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::wait;
pub use antiphon_sync::wait::Generation;

use crate::fiber::may_be_ready;
use crate::raw::deadline_after;

/// Tells all threads that wait that something has happened. Sleepers of one NUMA node are woken by
/// one system call; where more than eight are on several, the sender wakes eight, and each of these
/// as many, so that all are back together. 1152 bytes.
///
/// A thread asks [`now`](Self::now), looks whether it has to wait, and waits with what it was told:
/// what is sent in between is not lost. Threads that need a mutex next want a
/// [`Condvar`](crate::Condvar), which hands them the mutex one after the other. Of signal handlers
/// and forks [`Event`](crate::Event) says more; there is a
/// [`shared::Broadcast`](crate::shared::Broadcast) without a lock.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static WORK: antiphon::Broadcast = antiphon::Broadcast::new();
/// static TASKS: AtomicU32 = AtomicU32::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| loop {
///             let seen = WORK.now();
///             if TASKS.load(Relaxed) > 0 {
///                 break;
///             }
///             WORK.wait(seen);
///         });
///     }
///     TASKS.store(1, Relaxed);
///     WORK.send();
/// });
/// ```
#[repr(transparent)]
pub struct Broadcast(wait::Broadcast<Linux>);

impl Broadcast {
    /// Nothing was sent, and nobody waits.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::Broadcast::NEW)
    }

    /// The present generation, to [wait](Self::wait) with. What was done before each send so far
    /// happens before the return.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Generation {
        self.0.now()
    }

    /// Ends the waits of all that wait with the present generation. Makes system calls only if
    /// threads sleep, or did with the generation before: one, or one a NUMA node.
    #[inline]
    pub fn send(&self) {
        self.0.send();
    }

    /// Blocks until something was sent that `seen` does not count; returns the generation by then.
    /// Spins for a while, and then sleeps. `seen` is of this broadcast; 2³² sends between two looks
    /// are none.
    #[inline]
    pub fn wait(&self, seen: Generation) -> Generation {
        may_be_ready();
        self.0.wait(seen)
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`: `None`.
    pub fn wait_for(&self, seen: Generation, timeout: Duration) -> Option<Generation> {
        may_be_ready();
        self.0.wait_until(seen, Some(deadline_after(timeout)))
    }
}

impl Default for Broadcast {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Broadcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcast").field("now", &self.now()).finish_non_exhaustive()
    }
}
