//! `antiphon_cond_t`: the condition variable, and the fields that C adds to it.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–15 | `waiters` | the condition variable that Rust users have |
//! | 16–23 | `inside` | how many waiters may touch the object still, and whose process's it is |
//! | 24–31 | | zero: kept for kinds to come |
//!
//! The object may be destroyed while waiters that were notified have not returned, and is made new
//! in the child of a fork, at its first use there ([`Inside`]). A waiter that was moved in its
//! sleep to the mutex's queue is counted out by the broadcast that did it.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_platform::{Clocks as _, Deadline};
use antiphon_sync::wait::{Condvar, End, Inside};
use libc::{ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;
use crate::mutex::Mutex;

/// `antiphon_cond_t`.
#[repr(C)]
pub struct Cond {
    waiters: Condvar<Linux>,
    inside: Inside<Linux>,
    kept: [u32; 2],
}

impl Cond {
    const fn new() -> Self {
        Self { waiters: Condvar::NEW, inside: Inside::NEW, kept: [0; 2] }
    }

    /// Waits; returns whether it was notified before the deadline, or woken for no reason.
    fn wait(&self, mutex: &Mutex, deadline: Option<Deadline>) -> bool {
        self.adopt();
        // The thread that destroys it had the mutex later. Before the list, from which a broadcast
        // may count us out.
        let visit = self.inside.enter();
        // SAFETY: the waiter owns the mutex, and lets it be until the wait is over: that is below.
        let entry = unsafe { self.waiters.prepare_with(&mutex.0) };
        let napping = entry.naps();
        // SAFETY: the waiter owns the mutex.
        unsafe { mutex.0.unlock() };
        while !entry.sleep(deadline) {}
        let end = match entry.moved() {
            // Counted out already: the object may be gone.
            Ok(moved) => End::Moved(moved),
            Err(entry) => {
                // SAFETY: prepared above.
                let end = unsafe { self.waiters.finish(entry) };
                self.inside.leave(visit);
                end
            }
        };
        let gave_up = match &end {
            End::GaveUp => true,
            // Without a node it has slept for a while and knows nothing.
            _ => napping && deadline.is_some_and(|until| Linux::now(until.clock) >= until.ns),
        };
        match end {
            End::Moved(moved) => mutex.0.lock_moved(moved),
            End::GaveUp | End::Notified => mutex.0.lock(),
        }
        !gave_up
    }

    fn notify_all(&self) {
        self.adopt();
        let moved = self.waiters.notify_all();
        if moved != 0 {
            self.inside.count_out(moved);
        }
    }

    /// Makes the object new if this process has it from its parent.
    fn adopt(&self) {
        self.inside.adopt(|| {
            let waiters = (&raw const self.waiters).cast_mut();
            // SAFETY: all bytes of it are atomics, and no other thread is past this (INSIDE-2). The
            // waiters that it names belong to the parent and are not in this process.
            unsafe { waiters.write(Condvar::NEW) };
        });
    }
}

exports! {
    /// Makes a condition variable without waiters.
    fn antiphon_cond_init(cond: *mut Cond) {
        // SAFETY: the caller's memory for one.
        unsafe { cond.write(Cond::new()) }
    }

    /// Waits until the object may go.
    fn antiphon_cond_destroy(cond: &Cond) -> c_int {
        if cond.inside.is_used() {
            cond.adopt();
        }
        if cond.waiters.has_waiters() {
            return libc::EBUSY;
        }
        cond.inside.wait_until_empty();
        0
    }

    /// Waits until notified.
    fn antiphon_cond_wait(cond: &Cond, mutex: &Mutex) {
        cond.wait(mutex, None);
    }

    /// Waits until notified, or gives up.
    fn antiphon_cond_timedwait(
        cond: &Cond,
        mutex: &Mutex,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| unless(cond.wait(mutex, Some(deadline)), ETIMEDOUT))
    }

    /// Notifies the waiter that has waited longest.
    fn antiphon_cond_signal(cond: &Cond) {
        if cond.waiters.has_waiters() {
            cond.adopt();
            cond.waiters.notify_one();
        }
    }

    /// Notifies all that wait.
    fn antiphon_cond_broadcast(cond: &Cond) {
        if cond.waiters.has_waiters() {
            cond.notify_all();
        }
    }
}
