//! `antiphon_cond_t`: the condition variable, and what C adds to it.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–15 | `waiters` | the condition variable that Rust users have |
//! | 16–19 | `inside` | how many waiters may touch the object still |
//! | 20–23 | `epoch` | the process that uses it; 0 if none has |
//! | 24–31 | | zero: kept for kinds to come |
//!
//! **Destruction.** In C and C++ the object may go as soon as its waiters are notified, before they
//! have returned. A waiter that is just giving up still looks at the list then. So waiters are
//! counted, the decrement is the last that one does to the object, and `destroy` waits for zero.
//! Who was moved in its sleep to the mutex's queue is counted out by the broadcast that did it.
//!
//! **Fork.** In the child there are no waiters but in memory, and the list may have been locked by
//! a thread that is not there. The first use by a process of another epoch makes it new.

use core::ffi::c_int;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_linux::{Linux, U32};
use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform};
use antiphon_sync::wait::{Condvar, End};
use libc::{ETIMEDOUT, timespec};

use crate::code::{timed, unless};
use crate::export::exports;
use crate::mutex::Mutex;

/// `antiphon_cond_t`.
#[repr(C)]
pub struct Cond {
    waiters: Condvar<Linux>,
    inside: U32,
    epoch: U32,
    kept: [u32; 2],
}

/// [`Cond::epoch`]: the process of that epoch is making the object new.
const RENEWING: u32 = 1 << 31;

impl Cond {
    const fn new() -> Self {
        Self { waiters: Condvar::NEW, inside: U32::ZERO, epoch: U32::ZERO, kept: [0; 2] }
    }

    /// Waits; returns whether it was notified before the deadline, or woken for no reason.
    fn wait(&self, mutex: &Mutex, deadline: Option<Deadline>) -> bool {
        self.adopt();
        // Relaxed: the mutex is held, and whoever destroys had it later. Before the list, from
        // which a broadcast may count us out.
        self.inside.fetch_add(1, Relaxed);
        let epoch = Linux::epoch();
        let entry = self.waiters.prepare_with(&mutex.0);
        let napping = entry.node::<Linux>().is_none();
        // SAFETY: who waits owns the mutex.
        unsafe { mutex.0.unlock() };
        while !entry.sleep::<Linux>(deadline) {}
        let end = match entry.moved::<Linux>() {
            // Counted out already: the object may be gone.
            Ok(moved) => End::Moved(moved),
            Err(entry) => {
                let end = self.waiters.finish(entry);
                // A child that was forked out of the wait was counted in its parent's object.
                if Linux::epoch() == epoch {
                    self.go_out(1);
                }
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

    /// The last that these waiters do to the object, or that is done to it on behalf of them.
    fn go_out(&self, waiters: u32) {
        // Release: our accesses come before the memory is gone; pairs with the acquire in
        // `destroy`.
        self.inside.fetch_sub(waiters, Release);
    }

    fn notify_all(&self) {
        self.adopt();
        let moved = self.waiters.notify_all();
        if moved != 0 {
            self.go_out(moved);
        }
    }

    /// Makes the object new if this process has it from its parent.
    fn adopt(&self) {
        let epoch = Linux::epoch();
        // Acquire: the object as it was made new; pairs with the release below.
        if self.epoch.load(Acquire) != epoch {
            self.renew(epoch);
        }
    }

    #[cold]
    fn renew(&self, epoch: u32) {
        let renewing = epoch | RENEWING;
        loop {
            // Acquire, here and below: as in `adopt`.
            let seen = self.epoch.wait_while(Acquire, |seen| seen == renewing);
            if seen == epoch {
                return;
            }
            // A renewal that a fork has interrupted is begun again.
            if self.epoch.compare_exchange(seen, renewing, Acquire, Relaxed).is_err() {
                continue;
            }
            if seen != 0 {
                let waiters = (&raw const self.waiters).cast_mut();
                // SAFETY: all bytes of it are atomics, and whoever else comes waits for the epoch.
                // The waiters that it names belong to the parent and are not in this process.
                unsafe { waiters.write(Condvar::NEW) };
                self.inside.store(0, Relaxed);
            }
            // Release: pairs with the acquire in `adopt`.
            self.epoch.store(epoch, Release);
            return;
        }
    }
}

exports! {
    /// Makes a condition variable that nobody waits for.
    fn antiphon_cond_init(cond: *mut Cond) {
        // SAFETY: the caller's memory for one.
        unsafe { cond.write(Cond::new()) }
    }

    /// Waits until the object may go.
    fn antiphon_cond_destroy(cond: &Cond) -> c_int {
        if cond.epoch.load(Relaxed) != 0 {
            cond.adopt();
        }
        if cond.waiters.has_waiters() {
            return libc::EBUSY;
        }
        // Acquire: pairs with the release in `go_out`.
        cond.inside.wait_while(Acquire, |inside| inside != 0);
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

    /// Notifies who has waited longest.
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
