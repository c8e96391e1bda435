//! The broadcast: wakes all waiting threads at once.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::wait;
pub use antiphon_sync::wait::Generation;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;

/// Notifies all waiting threads at once. Sleepers of one NUMA node are woken by one system call. If
/// more than eight sleepers are on several nodes, the sender wakes eight, and each of these wakes
/// eight more, so that all return at about the same time. It takes 1152 bytes.
///
/// A thread calls [`now`](Self::now), checks whether it has to wait, and waits with the returned
/// generation: a send in between is not lost. For threads that need a mutex next, use a
/// [`Condvar`](crate::Condvar), which hands them the mutex one after the other. For signal handlers
/// and forks see [`Event`](crate::Event); the broadcast of the crate `antiphon-shared` has no lock.
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
    /// Creates a broadcast without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::Broadcast::NEW)
    }

    /// Returns the current generation, to [wait](Self::wait) with. All operations before the sends
    /// so far happen before the return.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Generation {
        self.0.now()
    }

    /// Releases all threads that wait with the current generation. Makes system calls only if
    /// threads sleep, or slept in the generation before: one call, or one per NUMA node.
    #[inline]
    pub fn send(&self) {
        self.0.send();
    }

    /// Blocks until there was a send after `seen`; returns the current generation then. Spins for a
    /// while, then sleeps. `seen` must come from this broadcast. Exactly 2³² sends between two
    /// calls look like none.
    #[inline]
    pub fn wait(&self, seen: Generation) -> Generation {
        may_be_ready();
        self.0.wait(seen)
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout` and returns `None`.
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
