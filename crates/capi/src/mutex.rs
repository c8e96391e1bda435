//! `antiphon_mutex_t`.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_sync::lock::ShflMutex;
use libc::{EBUSY, ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;

/// `antiphon_mutex_t`.
#[repr(transparent)]
pub struct Mutex(pub(crate) ShflMutex<Linux>);

exports! {
    /// Makes a free mutex.
    fn antiphon_mutex_init(mutex: *mut Mutex) {
        // SAFETY: the caller passes memory for one value.
        unsafe { mutex.write(Mutex(ShflMutex::NEW)) }
    }

    /// Checks whether the mutex may be destroyed.
    fn antiphon_mutex_destroy(mutex: &Mutex) -> c_int {
        unless(!mutex.0.is_locked(), EBUSY)
    }

    /// Acquires the mutex.
    fn antiphon_mutex_lock(mutex: &Mutex) {
        mutex.0.lock();
    }

    /// Acquires the mutex if it is free.
    fn antiphon_mutex_trylock(mutex: &Mutex) -> c_int {
        unless(mutex.0.try_lock(), EBUSY)
    }

    /// Acquires the mutex, or gives up at the deadline.
    fn antiphon_mutex_timedlock(mutex: &Mutex, clock: c_int, until: &timespec) -> c_int {
        timed(clock, until, |deadline| unless(mutex.0.lock_until(deadline), ETIMEDOUT))
    }

    /// Releases the mutex.
    fn antiphon_mutex_unlock(mutex: &Mutex) {
        // SAFETY: the caller owns it.
        unsafe { mutex.0.unlock() }
    }
}
