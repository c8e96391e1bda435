//! The raw readers-writer lock that [`lock_api`] wraps.

use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_sync::lock::{Refused, RwForm, ShflRwLock, Standard};
use antiphon_sync::policy::Numa;
use lock_api::GuardSend;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;

/// The raw form of [`RwLock`](crate::RwLock), 16 bytes; with [`Recursive`](crate::raw::Recursive)
/// as its form, that of [`RecursiveRwLock`](crate::RecursiveRwLock). Any thread may unlock it.
///
/// In the standard form, readers wait behind a waiting writer. So a thread that holds the lock for
/// reading, and reads again, may deadlock. In the recursive form, readers don't wait for waiting
/// writers; so readers that overlap without a gap keep writers out.
///
/// # Panics
///
/// Every method that reads panics if there are [`MAX_READERS`](antiphon_sync::lock::MAX_READERS)
/// readers already (about eight million). Guards that were forgotten count, too.
#[repr(transparent)]
pub struct RawRwLock<F: RwForm = Standard>(ShflRwLock<Linux, Numa, F>);

const _: () = assert!(size_of::<RawRwLock>() == 16);

impl<F: RwForm> Drop for RawRwLock<F> {
    /// Gives back the memory that was taken to count readers by socket.
    #[inline]
    fn drop(&mut self) {
        self.0.gather();
    }
}

/// Returns a guard if the lock was acquired. Panics if there are too many readers.
fn shared(had: Result<(), Refused>) -> Option<GuardSend> {
    assert!(had != Err(Refused::TooManyReaders), "too many readers");
    had.is_ok().then_some(GuardSend::new())
}

/// As [`shared`], for a read without a deadline, which fails only if there are too many readers.
fn shared_at_last(had: Result<(), Refused>) -> GuardSend {
    assert!(had.is_ok(), "too many readers");
    GuardSend::new()
}

// SAFETY: writers exclude all others, with acquire and release semantics; the lock may be moved or
// dropped while it is locked: its waiters' nodes don't point back at it.
unsafe impl<F: RwForm> lock_api::RawRwLock for RawRwLock<F> {
    const INIT: Self = Self(ShflRwLock::NEW);
    type SharedGuard = GuardSend;
    type ExclusiveGuard = GuardSend;

    #[inline]
    fn lock_shared(&self) -> GuardSend {
        may_be_ready();
        shared_at_last(self.0.read())
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardSend> {
        shared(self.0.try_read())
    }

    #[inline]
    unsafe fn unlock_shared(&self, _: GuardSend) {
        // SAFETY: here and below, the guard proves that the caller owns the lock in this mode.
        unsafe { self.0.unlock_read() }
    }

    #[inline]
    fn lock_exclusive(&self) -> GuardSend {
        may_be_ready();
        self.0.write();
        GuardSend::new()
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<GuardSend> {
        self.0.try_write().then_some(GuardSend::new())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _: GuardSend) {
        // SAFETY: the guard proves that the caller owns the lock in this mode.
        unsafe { self.0.unlock_write() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked_by_writer()
    }
}

// SAFETY: no writer can take the lock in between.
unsafe impl<F: RwForm> lock_api::RawRwLockDowngrade for RawRwLock<F> {
    unsafe fn downgrade(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as in `unlock_exclusive`.
        unsafe { self.0.downgrade() }
        guard
    }
}

// SAFETY: a timed lock either owns the lock or doesn't.
unsafe impl<F: RwForm> lock_api::RawRwLockTimed for RawRwLock<F> {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardSend> {
        may_be_ready();
        shared(self.0.read_until(deadline_after(timeout)))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.try_lock_shared_for(timeout.saturating_duration_since(Instant::now()))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardSend> {
        may_be_ready();
        self.0.write_until(deadline_after(timeout)).then_some(GuardSend::new())
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.try_lock_exclusive_for(timeout.saturating_duration_since(Instant::now()))
    }
}

// SAFETY: one upgradable reader at a time, which waits for the others to leave.
unsafe impl<F: RwForm> lock_api::RawRwLockUpgrade for RawRwLock<F> {
    type UpgradableGuard = GuardSend;

    fn lock_upgradable(&self) -> GuardSend {
        may_be_ready();
        self.0.upgradable();
        GuardSend::new()
    }

    fn try_lock_upgradable(&self) -> Option<GuardSend> {
        self.0.try_upgradable().then_some(GuardSend::new())
    }

    unsafe fn unlock_upgradable(&self, _: GuardSend) {
        // SAFETY: the guard proves that the caller owns the lock in this mode.
        unsafe { self.0.unlock_upgradable() }
    }

    unsafe fn upgrade(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as in `unlock_upgradable`.
        unsafe { self.0.upgrade() }
        guard
    }

    unsafe fn try_upgrade(&self, guard: GuardSend) -> Result<GuardSend, GuardSend> {
        // SAFETY: as in `unlock_upgradable`.
        if unsafe { self.0.try_upgrade() } { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: no writer can take the lock in between.
unsafe impl<F: RwForm> lock_api::RawRwLockUpgradeDowngrade for RawRwLock<F> {
    unsafe fn downgrade_upgradable(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as in `unlock_upgradable`.
        unsafe { self.0.downgrade_upgradable() }
        guard
    }

    unsafe fn downgrade_to_upgradable(&self, guard: GuardSend) -> GuardSend {
        // SAFETY: as in `unlock_exclusive`.
        unsafe { self.0.downgrade_to_upgradable() }
        guard
    }
}

// SAFETY: a timed lock or upgrade either succeeds or leaves the ownership unchanged.
unsafe impl<F: RwForm> lock_api::RawRwLockUpgradeTimed for RawRwLock<F> {
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardSend> {
        may_be_ready();
        self.0.upgradable_until(deadline_after(timeout)).then_some(GuardSend::new())
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.try_lock_upgradable_for(timeout.saturating_duration_since(Instant::now()))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardSend,
        timeout: Duration,
    ) -> Result<GuardSend, GuardSend> {
        // SAFETY: as in `unlock_upgradable`.
        let upgraded = unsafe { self.0.upgrade_until(deadline_after(timeout)) };
        if upgraded { Ok(guard) } else { Err(guard) }
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardSend,
        timeout: Instant,
    ) -> Result<GuardSend, GuardSend> {
        let timeout = timeout.saturating_duration_since(Instant::now());
        // SAFETY: as in `unlock_upgradable`.
        unsafe { self.try_upgrade_for(guard, timeout) }
    }
}
