//! The semaphore, with permits that give themselves back.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::wait;
pub use antiphon_sync::wait::{MAX_PERMITS, TooManyPermits};

use crate::fiber::may_be_ready;
use crate::raw::deadline_after;

/// So many permits, which threads take and give. 16 bytes.
///
/// Waiters are served in the order in which they came. A comer takes a permit ahead of them if
/// there is one, but no waiter is overtaken so for much longer than it was called.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static DOWNLOADS: antiphon::Semaphore = antiphon::Semaphore::new(2);
/// static RUNNING: AtomicU32 = AtomicU32::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..8 {
///         scope.spawn(|| {
///             let _permit = DOWNLOADS.acquire();
///             assert!(RUNNING.fetch_add(1, Relaxed) < 2);
///             RUNNING.fetch_sub(1, Relaxed);
///         });
///     }
/// });
/// assert_eq!(DOWNLOADS.available_permits(), 2);
/// ```
#[repr(transparent)]
pub struct Semaphore(wait::Semaphore<Linux>);

/// Permits that were taken; gives them back when dropped.
#[must_use = "a permit that is dropped at once is given back at once"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: u32,
}

impl Semaphore {
    /// A semaphore that has so many permits.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`].
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        Self(wait::Semaphore::new(permits))
    }

    /// Takes a permit; blocks until it is had.
    pub fn acquire(&self) -> SemaphorePermit<'_> {
        self.acquire_many(1)
    }

    /// Takes `permits` permits together; blocks until they are had. While they gather, others may
    /// take some that want less; after a while they may not.
    ///
    /// # Panics
    ///
    /// If there can't be so many: more than [`MAX_PERMITS`].
    pub fn acquire_many(&self, permits: u32) -> SemaphorePermit<'_> {
        may_be_ready();
        self.0.acquire_many(permits);
        self.permit(permits)
    }

    /// Takes a permit if there is one, ahead of any waiters; never blocks.
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes `permits` permits if they are there, ahead of any waiters; never blocks.
    pub fn try_acquire_many(&self, permits: u32) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire(permits).then(|| self.permit(permits))
    }

    /// Takes a permit, or gives up after `timeout`. One that is there is had whatever the timeout.
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// Takes `permits` permits together, or gives up after `timeout`.
    ///
    /// # Panics
    ///
    /// As [`acquire_many`](Self::acquire_many).
    pub fn try_acquire_many_for(
        &self,
        permits: u32,
        timeout: Duration,
    ) -> Option<SemaphorePermit<'_>> {
        may_be_ready();
        let taken = self.0.acquire_until(permits, deadline_after(timeout));
        taken.then(|| self.permit(permits))
    }

    /// Adds permits, to those that were there or instead of some that were
    /// [forgotten](SemaphorePermit::forget); never blocks.
    ///
    /// # Errors
    ///
    /// [`TooManyPermits`] if there would be more than [`MAX_PERMITS`]; then none is added.
    pub fn add_permits(&self, permits: u32) -> Result<(), TooManyPermits> {
        self.0.release(permits)
    }

    /// How many permits are there; may be stale at once.
    #[must_use]
    pub fn available_permits(&self) -> u32 {
        self.0.permits()
    }

    fn permit(&self, permits: u32) -> SemaphorePermit<'_> {
        SemaphorePermit { semaphore: self, permits }
    }
}

impl SemaphorePermit<'_> {
    /// Keeps the permits for good: they are not given back. Any thread may
    /// [add](Semaphore::add_permits) others in their place.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// How many permits these are.
    #[must_use]
    pub fn num_permits(&self) -> u32 {
        self.permits
    }
}

impl Drop for SemaphorePermit<'_> {
    /// Gives the permits back.
    ///
    /// # Panics
    ///
    /// If so many were added meanwhile that there is no room for these.
    fn drop(&mut self) {
        let given = self.semaphore.0.release(self.permits);
        // Not a second panic, which would end the process.
        assert!(given.is_ok() || std::thread::panicking(), "more permits than there can be");
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permits = self.available_permits();
        f.debug_struct("Semaphore").field("available_permits", &permits).finish()
    }
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit").field("num_permits", &self.permits).finish()
    }
}
