//! Our condition variable, on the Linux back end.

use std::cell::UnsafeCell;

use antiphon_linux::Linux;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait;

use super::guarded::Guarded;

/// A number under the mutex, with the condition variable.
pub struct Condvar {
    mutex: ShflMutex<Linux>,
    changed: wait::Condvar<Linux>,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched under the mutex only.
unsafe impl Sync for Condvar {}

impl Guarded for Condvar {
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
