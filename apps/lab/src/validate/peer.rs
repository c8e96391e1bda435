//! The C library's mutex, measured beside the futex mutex that represents it in simulations,
//! because the former can't be simulated.

use std::cell::UnsafeCell;

use antiphon_sync::lock::Lock;

/// Its name in reports.
pub const GLIBC: &str = "glibc";

/// A mutex of the C library's default type.
pub struct Glibc(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a `pthread_mutex_t` may be used by several threads at a time, and a free one may be sent
// to another thread.
unsafe impl Sync for Glibc {}
// SAFETY: a free `pthread_mutex_t` may be sent to another thread.
unsafe impl Send for Glibc {}

// SAFETY: the mutex is initialised, has the default type, and is borrowed, so it does not move
// while it is used; its calls can't fail for callers that keep the trait's contract.
unsafe impl Lock for Glibc {
    const NEW: Self = Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

    #[inline]
    fn lock(&self) {
        // SAFETY: an initialised mutex that does not move, as above.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: an initialised mutex that does not move, as above.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: an initialised mutex that does not move, and that the caller has locked.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}
