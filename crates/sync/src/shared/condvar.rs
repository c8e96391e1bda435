//! The process-shared condition variable: a count of notifications.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `sequence` | number of notifications |
//! | 4–7 | `waiters` | number of threads that wait, or were killed while they waited |
//!
//! A waiter sleeps until the count has changed from what it was while the waiter held the mutex.
//! Each notification wakes all sleepers: the kernel serves sleepers by priority, so a thread that
//! came after the notification could be woken in the place of a thread that came before it, and
//! sleep on.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, AtomicInteger, Deadline, SharedWait};

use super::{Acquired, SharedMutex, sleep};
use crate::lock::{Form, Standard};
use crate::nap;

/// A condition variable in memory that processes share, 8 bytes, for any [`SharedMutex`], one at a
/// time.
#[repr(C)]
pub struct SharedCondvar<P: SharedWait, F: Form = Standard> {
    sequence: P::U32,
    waiters: P::U32,
    form: PhantomData<F>,
}

impl<P: SharedWait, F: Form> SharedCondvar<P, F> {
    /// A condition variable that no thread waits for.
    pub const NEW: Self = Self { sequence: P::U32::ZERO, waiters: P::U32::ZERO, form: PhantomData };

    /// Unlocks `mutex`, waits until notified or until the deadline, or wakes spuriously, and locks
    /// the mutex again. Returns how the mutex was acquired, and whether a notification has come.
    ///
    /// # Safety
    ///
    /// The calling thread owns the mutex.
    pub unsafe fn wait(
        &self,
        mutex: &SharedMutex<P, F>,
        deadline: Option<Deadline>,
    ) -> (Acquired, bool) {
        // Relaxed, here and below: a notifier whose notification we must not miss has had the mutex
        // after us.
        self.waiters.fetch_add(1, Relaxed);
        let seen = self.sequence.load(Relaxed);
        // SAFETY: the caller's promise.
        unsafe { mutex.unlock() };
        let notified = loop {
            let slept_out = sleep::<P, F>(&self.sequence, seen, deadline);
            if self.sequence.load(Relaxed) != seen {
                break true;
            }
            if slept_out && nap::passed::<P>(deadline) {
                break false;
            }
        };
        self.waiters.fetch_sub(1, Relaxed);
        (mutex.lock(), notified)
    }

    /// Notifies at least one present waiter, and perhaps others.
    pub fn notify_one(&self) {
        self.notify_all();
    }

    /// Notifies all present waiters.
    pub fn notify_all(&self) {
        // Relaxed: see `wait`.
        if self.waiters.load(Relaxed) == 0 {
            return;
        }
        self.sequence.fetch_add(1, Relaxed);
        P::wake_shared(&raw const self.sequence, u32::MAX);
    }
}
