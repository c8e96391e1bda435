//! `pthread_cond_t` with a mutex and the number that is waited for.

use std::cell::UnsafeCell;

use super::guarded::Guarded;

/// A number under a mutex, with a condition variable.
pub struct Pthread {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    cond: UnsafeCell<libc::pthread_cond_t>,
    number: UnsafeCell<u32>,
}

// SAFETY: the mutex and the condition variable may be used by several threads at a time; the number
// is accessed only under the mutex.
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
        // SAFETY: the mutex does not move while it is borrowed. The default type can't fail.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
        // SAFETY: the mutex is held.
        unsafe { *self.number.get() = number };
        // SAFETY: locked by this thread above.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }

    #[inline]
    fn notify_one(&self) {
        // SAFETY: the condition variable does not move while it is borrowed.
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
        // SAFETY: the mutex is held.
        while unsafe { *self.number.get() } < enough {
            // SAFETY: this thread owns the mutex, which is the only one used with the condition
            // variable.
            unsafe { libc::pthread_cond_wait(self.cond.get(), self.mutex.get()) };
        }
        // SAFETY: the mutex is held, and this is the only borrow under it.
        then(unsafe { &mut *self.number.get() });
        // SAFETY: locked by this thread above.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }
}
