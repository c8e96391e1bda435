//! The C library's mutex, measured beside the futex mutex that represents it in simulations,
//! because the former can't be simulated.

use std::cell::UnsafeCell;

use antiphon_sync::lock::Lock;

/// Its name in reports.
pub const GLIBC: &str = "glibc";

/// A mutex of the C library's default type.
pub struct Glibc(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a `pthread_mutex_t` is made to be used by several threads at a time, and one that is free
// may be sent to another.
unsafe impl Sync for Glibc {}
// SAFETY: as above.
unsafe impl Send for Glibc {}

// SAFETY: an initialised mutex of the default type, which is borrowed and does not move while it is
// used; its calls can't fail for callers that keep the trait's promise.
unsafe impl Lock for Glibc {
    const NEW: Self = Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

    #[inline]
    fn lock(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: as above, and locked by the caller.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}
