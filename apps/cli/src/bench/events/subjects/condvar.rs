//! Our condition variable, on the Linux back end.

use std::cell::UnsafeCell;

use antiphon_linux::Linux;
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::wait;

use super::{Broadcast, Mechanism};

/// A number under the mutex, with the condition variable.
struct Guarded {
    mutex: ShflMutex<Linux>,
    changed: wait::Condvar<Linux>,
    number: UnsafeCell<u32>,
}

// SAFETY: the number is touched under the mutex only.
unsafe impl Sync for Guarded {}

impl Guarded {
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

    /// Waits for a number that is enough, and lets `then` have it.
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

/// The condition variable and a flag.
pub struct One(Guarded);

impl Mechanism for One {
    fn new() -> Result<Self, String> {
        Ok(Self(Guarded::new()))
    }

    #[inline]
    fn signal(&self) {
        self.0.put(1);
        self.0.changed.notify_one();
    }

    #[inline]
    fn wait(&self) {
        self.0.wait(1, |flag| *flag = 0);
    }
}

/// The condition variable and the round.
pub struct All(Guarded);

impl Broadcast for All {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self(Guarded::new()))
    }

    fn tell(&self, round: u32) {
        self.0.put(round);
        self.0.changed.notify_all();
    }

    fn wait(&self, _: usize, round: u32) {
        self.0.wait(round, |_| ());
    }
}
