//! `antiphon_cond_t`: the condition variable, and the fields that C adds to it.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–15 | `waiters` | the condition variable of the Rust interface |
//! | 16–23 | `inside` | how many waiters may still touch the object, and the epoch of its process |
//! | 24–31 | | zero: reserved for later use |
//!
//! The object may be destroyed while waiters that were notified have not returned, and is
//! reinitialised in the child of a fork, at its first use there ([`Inside`]). A waiter that a
//! broadcast moved to the mutex's queue in its sleep is counted out by that broadcast.

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

    /// Waits; returns whether it was notified before the deadline, or woken spuriously.
    fn wait(&self, mutex: &Mutex, deadline: Option<Deadline>) -> bool {
        self.adopt();
        // The thread that destroys the object owned the mutex later. Counted before we join the
        // list, because from there a broadcast may count us out.
        let visit = self.inside.enter();
        // SAFETY: the waiter owns the mutex, and the reference keeps the mutex in place until the
        // wait is over, below.
        let entry = unsafe { self.waiters.prepare_with(&mutex.0) };
        let napping = entry.naps();
        // SAFETY: the waiter owns the mutex.
        unsafe { mutex.0.unlock() };
        while !entry.sleep(deadline) {}
        let end = match entry.moved() {
            // Already counted out: the object may be freed.
            Ok(moved) => End::Moved(moved),
            Err(entry) => {
                // SAFETY: `entry` was prepared above.
                let end = unsafe { self.waiters.finish(entry) };
                self.inside.leave(visit);
                end
            }
        };
        let gave_up = match &end {
            End::GaveUp => true,
            // Without a node it has only napped, and does not know whether it was notified.
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

    /// Reinitialises the object if this process has it from its parent.
    fn adopt(&self) {
        self.inside.adopt(|| {
            let waiters = (&raw const self.waiters).cast_mut();
            // SAFETY: all its bytes are atomics, and no other thread is past this point (INSIDE-2).
            // The waiters that it names belong to the parent and are not in this process.
            unsafe { waiters.write(Condvar::NEW) };
        });
    }
}

exports! {
    /// Makes a condition variable without waiters.
    fn antiphon_cond_init(cond: *mut Cond) {
        // SAFETY: the caller passes memory for one value.
        unsafe { cond.write(Cond::new()) }
    }

    /// Waits until the object may be freed.
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

    /// Waits until notified, or gives up at the deadline.
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

    /// Notifies all waiters.
    fn antiphon_cond_broadcast(cond: &Cond) {
        if cond.waiters.has_waiters() {
            cond.notify_all();
        }
    }
}
