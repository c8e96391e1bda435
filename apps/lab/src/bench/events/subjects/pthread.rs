//! `pthread_cond_t` with a mutex and what is waited for.

use std::cell::UnsafeCell;

use super::guarded::Guarded;

/// A number under a mutex, with a condition variable.
pub struct Pthread {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    cond: UnsafeCell<libc::pthread_cond_t>,
    number: UnsafeCell<u32>,
}

// SAFETY: the mutex and the condition variable are made for several threads at a time; the number
// is touched under the mutex only.
unsafe impl Sync for Pthread {}

impl Guarded for Pthread {
    fn new() -> Self {
        Self {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            cond: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
            number: UnsafeCell::new(0),
        }
    }

    #[inline]
    fn put(&self, number: u32) {
        // SAFETY: a mutex that does not move while it is borrowed. The default type can't fail.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        // SAFETY: under the mutex.
        unsafe { *self.number.get() = number };
        // SAFETY: locked by this thread above.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }

    #[inline]
    fn notify_one(&self) {
        // SAFETY: a condition variable that does not move while it is borrowed.
        unsafe { libc::pthread_cond_signal(self.cond.get()) };
    }

    fn notify_all(&self) {
        // SAFETY: as in `notify_one`.
        unsafe { libc::pthread_cond_broadcast(self.cond.get()) };
    }

    #[inline]
    fn wait(&self, enough: u32, then: impl FnOnce(&mut u32)) {
        // SAFETY: as in `put`.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        // SAFETY: under the mutex.
        while unsafe { *self.number.get() } < enough {
            // SAFETY: the mutex is locked by this thread, and is the only one that is used here.
            unsafe { libc::pthread_cond_wait(self.cond.get(), self.mutex.get()) };
        }
        // SAFETY: under the mutex, and the only borrow there.
        then(unsafe { &mut *self.number.get() });
        // SAFETY: locked by this thread above.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }
}
