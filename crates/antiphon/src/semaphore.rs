//! The semaphore, with permits that are released when dropped.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::wait;
pub use antiphon_sync::wait::TooManyPermits;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;

/// A counting semaphore: a number of permits, which threads acquire and release. It takes 16 bytes.
///
/// Waiters are served in the order of their arrival. An arriving thread takes a free permit ahead
/// of waiters, but a waiter that has been signalled is not overtaken for long.
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

/// Permits that were acquired. Dropping the guard releases them.
#[must_use = "a permit that is dropped at once is given back at once"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: u32,
}

impl Semaphore {
    /// The largest number of permits.
    pub const MAX_PERMITS: u32 = wait::MAX_PERMITS;

    /// Creates a semaphore with `permits` permits.
    ///
    /// # Panics
    ///
    /// If `permits` is above [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        Self(wait::Semaphore::new(permits))
    }

    /// Acquires a permit. Blocks until a permit is free.
    pub fn acquire(&self) -> SemaphorePermit<'_> {
        self.acquire_many(1)
    }

    /// Acquires `permits` permits together. Blocks until enough are free. Meanwhile, threads that
    /// want fewer may overtake; after a while they may not.
    ///
    /// # Panics
    ///
    /// If `permits` is above [`MAX_PERMITS`](Self::MAX_PERMITS): that many can never be free.
    pub fn acquire_many(&self, permits: u32) -> SemaphorePermit<'_> {
        may_be_ready();
        self.0.acquire_many(permits);
        self.permit(permits)
    }

    /// Acquires a permit if one is free, ahead of any waiters. Never blocks.
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// Acquires `permits` permits if they are free, ahead of any waiters. Never blocks.
    pub fn try_acquire_many(&self, permits: u32) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire(permits).then(|| self.permit(permits))
    }

    /// Acquires a permit, or gives up after `timeout`. A free permit is taken whatever the timeout.
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// Acquires `permits` permits together, or gives up after `timeout`.
    ///
    /// # Panics
    ///
    /// If `permits` is above [`MAX_PERMITS`](Self::MAX_PERMITS).
    pub fn try_acquire_many_for(
        &self,
        permits: u32,
        timeout: Duration,
    ) -> Option<SemaphorePermit<'_>> {
        may_be_ready();
        let taken = self.0.acquire_until(permits, deadline_after(timeout));
        taken.then(|| self.permit(permits))
    }

    /// Adds permits: new ones, or in place of permits that were
    /// [forgotten](SemaphorePermit::forget). Never blocks.
    ///
    /// # Errors
    ///
    /// [`TooManyPermits`] if there would be more than [`MAX_PERMITS`](Self::MAX_PERMITS); then no
    /// permit is added.
    pub fn add_permits(&self, permits: u32) -> Result<(), TooManyPermits> {
        self.0.release(permits)
    }

    /// Returns the number of free permits. It may be out of date at once.
    #[must_use]
    pub fn available_permits(&self) -> u32 {
        self.0.permits()
    }

    fn permit(&self, permits: u32) -> SemaphorePermit<'_> {
        SemaphorePermit { semaphore: self, permits }
    }
}

impl SemaphorePermit<'_> {
    /// Forgets the permits: they are not released. Any thread may [add](Semaphore::add_permits)
    /// new permits in their place.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Returns the number of permits that this guard holds.
    #[must_use]
    pub fn num_permits(&self) -> u32 {
        self.permits
    }
}

impl Drop for SemaphorePermit<'_> {
    /// Releases the permits.
    ///
    /// # Panics
    ///
    /// If the semaphore would exceed [`MAX_PERMITS`](Semaphore::MAX_PERMITS), because permits were
    /// added meanwhile.
    fn drop(&mut self) {
        let given = self.semaphore.0.release(self.permits);
        // No second panic while unwinding, which would abort the process.
        assert!(
            given.is_ok() || std::thread::panicking(),
            "a semaphore would have more than `MAX_PERMITS` permits"
        );
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
