//! `pthread_cond_t` with a mutex and what is waited for.

use std::cell::UnsafeCell;

use super::{Broadcast, Mechanism};

/// A number under a mutex, with a condition variable.
struct Guarded {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    cond: UnsafeCell<libc::pthread_cond_t>,
    number: UnsafeCell<u32>,
}

// SAFETY: the mutex and the condition variable are made for several threads at a time; the number
// is touched under the mutex only.
unsafe impl Sync for Guarded {}

impl Guarded {
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

    /// Waits for a number that is enough, and lets `then` have it.
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

/// One flag.
pub struct One(Guarded);

impl Mechanism for One {
    fn new() -> Result<Self, String> {
        Ok(Self(Guarded::new()))
    }

    #[inline]
    fn signal(&self) {
        self.0.put(1);
        // SAFETY: a condition variable that does not move while it is borrowed.
        unsafe { libc::pthread_cond_signal(self.0.cond.get()) };
    }

    #[inline]
    fn wait(&self) {
        self.0.wait(1, |flag| *flag = 0);
    }
}

/// The round.
pub struct All(Guarded);

impl Broadcast for All {
    fn new(_: usize) -> Result<Self, String> {
        Ok(Self(Guarded::new()))
    }

    fn tell(&self, round: u32) {
        self.0.put(round);
        // SAFETY: a condition variable that does not move while it is borrowed.
        unsafe { libc::pthread_cond_broadcast(self.0.cond.get()) };
    }

    fn wait(&self, _: usize, round: u32) {
        self.0.wait(round, |_| ());
    }
}
