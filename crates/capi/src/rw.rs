//! `antiphon_rwlock_t`.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::lock::ShflRwLock;
use libc::{EBUSY, ETIMEDOUT, timespec};

use crate::code::{read, timed, unless};
use crate::export::exports;

/// `antiphon_rwlock_t`.
#[repr(transparent)]
pub struct RwLock(pub(crate) ShflRwLock<Linux>);

exports! {
    /// Makes a free readers-writer lock.
    fn antiphon_rwlock_init(lock: *mut RwLock) {
        // SAFETY: the caller passes memory for one value.
        unsafe { lock.write(RwLock(ShflRwLock::NEW)) }
    }

    /// Checks whether the lock may be destroyed.
    fn antiphon_rwlock_destroy(lock: &RwLock) -> c_int {
        lock.0.gather();
        unless(!lock.0.is_locked(), EBUSY)
    }

    /// Acquires the lock for reading.
    fn antiphon_rwlock_rdlock(lock: &RwLock) -> c_int {
        read(lock.0.read(), EBUSY)
    }

    /// Acquires the lock for reading, even if the caller already reads.
    fn antiphon_rwlock_rdlock_again(lock: &RwLock) -> c_int {
        read(lock.0.read_recursive(), EBUSY)
    }

    /// Acquires the lock for reading if that needs no waiting.
    fn antiphon_rwlock_tryrdlock(lock: &RwLock) -> c_int {
        read(lock.0.try_read(), EBUSY)
    }

    /// Acquires the lock for reading, or gives up at the deadline.
    fn antiphon_rwlock_timedrdlock(lock: &RwLock, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| read(lock.0.read_until(deadline), ETIMEDOUT))
    }

    /// Releases the lock, which the caller holds for reading.
    fn antiphon_rwlock_rdunlock(lock: &RwLock) {
        // SAFETY: the caller holds it for reading.
        unsafe { lock.0.unlock_read() }
    }

    /// Acquires the lock for writing.
    fn antiphon_rwlock_wrlock(lock: &RwLock) {
        lock.0.write();
    }

    /// Acquires the lock for writing if it is free.
    fn antiphon_rwlock_trywrlock(lock: &RwLock) -> c_int {
        unless(lock.0.try_write(), EBUSY)
    }

    /// Acquires the lock for writing, or gives up at the deadline.
    fn antiphon_rwlock_timedwrlock(lock: &RwLock, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(lock.0.write_until(deadline), ETIMEDOUT))
    }

    /// Releases the lock, which the caller holds for writing.
    fn antiphon_rwlock_wrunlock(lock: &RwLock) {
        // SAFETY: the caller holds it for writing.
        unsafe { lock.0.unlock_write() }
    }

    /// Turns a writer into a reader.
    fn antiphon_rwlock_downgrade(lock: &RwLock) {
        // SAFETY: the caller holds it for writing.
        unsafe { lock.0.downgrade() }
    }

    /// Acquires the lock for reading, with the right to upgrade.
    fn antiphon_rwlock_uplock(lock: &RwLock) {
        lock.0.upgradable();
    }

    /// Acquires the lock upgradably if that needs no waiting.
    fn antiphon_rwlock_tryuplock(lock: &RwLock) -> c_int {
        unless(lock.0.try_upgradable(), EBUSY)
    }

    /// Acquires the lock upgradably, or gives up at the deadline.
    fn antiphon_rwlock_timeduplock(lock: &RwLock, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(lock.0.upgradable_until(deadline), ETIMEDOUT))
    }

    /// Releases the lock, which the caller holds upgradably.
    fn antiphon_rwlock_upunlock(lock: &RwLock) {
        // SAFETY: the caller holds it upgradably.
        unsafe { lock.0.unlock_upgradable() }
    }

    /// Turns an upgradable reader into the writer.
    fn antiphon_rwlock_upgrade(lock: &RwLock) {
        // SAFETY: the caller holds it upgradably.
        unsafe { lock.0.upgrade() }
    }

    /// Turns an upgradable reader into the writer if no other reader is in.
    fn antiphon_rwlock_tryupgrade(lock: &RwLock) -> c_int {
        // SAFETY: the caller holds it upgradably.
        unless(unsafe { lock.0.try_upgrade() }, EBUSY)
    }

    /// Turns an upgradable reader into the writer, or gives up at the deadline.
    fn antiphon_rwlock_timedupgrade(lock: &RwLock, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller holds it upgradably.
            unless(unsafe { lock.0.upgrade_until(deadline) }, ETIMEDOUT)
        })
    }

    /// Turns an upgradable reader into a plain one.
    fn antiphon_rwlock_downgrade_upgradable(lock: &RwLock) {
        // SAFETY: the caller holds it upgradably.
        unsafe { lock.0.downgrade_upgradable() }
    }

    /// Turns a writer into an upgradable reader.
    fn antiphon_rwlock_downgrade_to_upgradable(lock: &RwLock) {
        // SAFETY: the caller holds it for writing.
        unsafe { lock.0.downgrade_to_upgradable() }
    }
}
