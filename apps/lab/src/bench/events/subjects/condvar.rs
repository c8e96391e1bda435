//! Our condition variable, on the Linux back end.

use std::cell::UnsafeCell;

use antiphon_linux::Linux;
use antiphon_sync::lock::{Form, ShflMutex};
use antiphon_sync::policy::Chosen;
use antiphon_sync::wait;

use super::guarded::Guarded;

/// A number under a mutex, with a condition variable. Waiters of the condition variable sleep at
/// once; those of the mutex spin before, if its form is `F`.
pub struct Condvar<F: Form> {
    mutex: ShflMutex<Linux, Chosen, F>,
    changed: wait::Condvar<Linux>,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is accessed only under the mutex.
unsafe impl<F: Form> Sync for Condvar<F> {}

impl<F: Form> Guarded for Condvar<F> {
    fn new() -> Self {
        Self { mutex: ShflMutex::NEW, changed: wait::Condvar::NEW, number: UnsafeCell::new(0) }
    }

    #[inline]
    fn put(&self, number: u32) {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        unsafe { *self.number.get() = number };
        // SAFETY: locked by this thread above.
        unsafe { self.mutex.unlock() };
    }

    #[inline]
    fn notify_one(&self) {
        self.changed.notify_one();
    }

    fn notify_all(&self) {
        self.changed.notify_all();
    }

    #[inline]
    fn wait(&self, enough: u32, then: impl FnOnce(&mut u32)) {
        self.mutex.lock();
        // SAFETY: the mutex is held.
        while unsafe { *self.number.get() } < enough {
            // SAFETY: this thread owns the mutex.
            unsafe { self.changed.wait_with(&self.mutex, None) };
        }
        // SAFETY: the mutex is held, and this is the only borrow under it.
        then(unsafe { &mut *self.number.get() });
        // SAFETY: locked by this thread above.
        unsafe { self.mutex.unlock() };
    }
}
