//! Our condition variable, on the Linux back end.

use std::cell::UnsafeCell;

use antiphon_linux::Linux;
use antiphon_sync::lock::{Form, ShflMutex};
use antiphon_sync::policy::Chosen;
use antiphon_sync::wait;

use super::guarded::Guarded;

/// A number under the mutex, with the condition variable. Its waiters sleep at once; those of the
/// mutex spin before that, if it is of form `F`.
pub struct Condvar<F: Form> {
    mutex: ShflMutex<Linux, Chosen, F>,
    changed: wait::Condvar<Linux>,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched under the mutex only.
unsafe impl<F: Form> Sync for Condvar<F> {}

impl<F: Form> Guarded for Condvar<F> {
    fn new() -> Self {
        Self { mutex: ShflMutex::NEW, changed: wait::Condvar::NEW, number: UnsafeCell::new(0) }
    }

    #[inline]
    fn put(&self, number: u32) {
        self.mutex.lock();
        // SAFETY: under the mutex.
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
        // SAFETY: under the mutex.
        while unsafe { *self.number.get() } < enough {
            // SAFETY: this thread owns the mutex.
            unsafe { self.changed.wait_with(&self.mutex, None) };
        }
        // SAFETY: under the mutex, and the only borrow there.
        then(unsafe { &mut *self.number.get() });
        // SAFETY: locked by this thread above.
        unsafe { self.mutex.unlock() };
    }
}
