//! `antiphon_pshared_rwlock_t`, `antiphon_pshared_barrier_t`: for memory that processes share.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::shared::{Acquired, MAX_PARTIES, SharedBarrier, SharedRwLock};
use libc::{EBUSY, EINVAL, EOWNERDEAD, ETIMEDOUT, timespec};

use crate::code::timed;
use crate::export::exports;

/// `antiphon_pshared_rwlock_t`.
#[repr(transparent)]
pub struct RwLock(SharedRwLock<Linux>);

/// `antiphon_pshared_barrier_t`.
#[repr(transparent)]
pub struct Barrier(SharedBarrier<Linux>);

/// Returns the code of a lock call: `busy` if the lock was not acquired.
fn code(had: Option<Acquired>, busy: c_int) -> c_int {
    match had {
        Some(Acquired::Whole) => 0,
        Some(Acquired::OwnerDied) => EOWNERDEAD,
        None => busy,
    }
}

exports! {
    /// Makes a free readers-writer lock.
    fn antiphon_pshared_rwlock_init(lock: *mut RwLock) {
        // SAFETY: the caller passes memory for one value.
        unsafe { lock.write(RwLock(SharedRwLock::NEW)) }
    }

    /// Acquires the lock for reading.
    fn antiphon_pshared_rwlock_rdlock(lock: &RwLock) -> c_int {
        code(Some(lock.0.read()), EBUSY)
    }

    /// Acquires the lock for reading if that needs no waiting.
    fn antiphon_pshared_rwlock_tryrdlock(lock: &RwLock) -> c_int {
        code(lock.0.try_read(), EBUSY)
    }

    /// Acquires the lock for reading, or gives up at the deadline.
    fn antiphon_pshared_rwlock_timedrdlock(
        lock: &RwLock,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| code(lock.0.read_until(deadline), ETIMEDOUT))
    }

    /// Releases the lock, which the caller holds for reading.
    fn antiphon_pshared_rwlock_rdunlock(lock: &RwLock) {
        // SAFETY: the caller holds it for reading.
        unsafe { lock.0.unlock_read() }
    }

    /// Acquires the lock for writing.
    fn antiphon_pshared_rwlock_wrlock(lock: &RwLock) -> c_int {
        code(Some(lock.0.write()), EBUSY)
    }

    /// Acquires the lock for writing if it is free.
    fn antiphon_pshared_rwlock_trywrlock(lock: &RwLock) -> c_int {
        code(lock.0.try_write(), EBUSY)
    }

    /// Acquires the lock for writing, or gives up at the deadline.
    fn antiphon_pshared_rwlock_timedwrlock(
        lock: &RwLock,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| code(lock.0.write_until(deadline), ETIMEDOUT))
    }

    /// Releases the lock, which the caller holds for writing.
    fn antiphon_pshared_rwlock_wrunlock(lock: &RwLock) {
        // SAFETY: the caller holds it for writing.
        unsafe { lock.0.unlock_write() }
    }

    /// Returns whether no writer has died; called by a thread that holds the lock.
    fn antiphon_pshared_rwlock_is_whole(lock: &RwLock) -> c_int {
        c_int::from(lock.0.is_whole())
    }

    /// Declares, as the writer, that the guarded data is consistent again.
    fn antiphon_pshared_rwlock_recovered(lock: &RwLock) {
        lock.0.recovered();
    }

    /// Makes a barrier for `parties` threads.
    fn antiphon_pshared_barrier_init(barrier: *mut Barrier, parties: u32) -> c_int {
        if parties == 0 || parties > MAX_PARTIES {
            return EINVAL;
        }
        // SAFETY: the caller passes memory for one value.
        unsafe { barrier.write(Barrier(SharedBarrier::new(parties))) }
        0
    }

    /// Waits until all parties have come.
    fn antiphon_pshared_barrier_wait(barrier: &Barrier) -> c_int {
        c_int::from(barrier.0.wait())
    }

    /// Waits until all parties have come, or gives up at the deadline.
    fn antiphon_pshared_barrier_timedwait(
        barrier: &Barrier,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            barrier.0.wait_until(deadline).map_or(ETIMEDOUT, c_int::from)
        })
    }
}
