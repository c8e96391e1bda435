//! Deadlines of futures' waits: a thread that wakes them, started with the first.
//!
//! A child of a fork has no such thread, and perhaps a lock whose owner is not there: it begins
//! anew, and the parent's alarms are left as they were.

use std::collections::BTreeMap;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline, Platform as _};
use antiphon_runtime::select;

use crate::unpoisoned::lock;

/// When, in nanoseconds of the monotonic clock, and a number, as several may have that.
type At = (u64, u64);

/// The alarms of a process: never freed.
struct Process {
    epoch: u32,
    alarms: Mutex<Alarms>,
    changed: Condvar,
}

#[derive(Default)]
struct Alarms {
    set: BTreeMap<At, Waker>,
    next: u64,
    started: bool,
}

/// The last that there was, or null.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

/// An alarm that is set. Dropping it removes it.
pub(crate) struct Alarm(At, &'static Process);

impl select::Alarm<Linux> for Alarm {
    fn new(deadline: Deadline, waker: Waker) -> Self {
        let left_ns = deadline.ns.saturating_sub(Linux::now(deadline.clock));
        let process = Process::current();
        let mut alarms = process.lock();
        let at = (now().saturating_add(left_ns), alarms.next);
        alarms.next += 1;
        if !alarms.started {
            let thread = thread::Builder::new().name("antiphon-alarm".into());
            alarms.started = thread.spawn(|| process.serve()).is_ok();
        }
        if !alarms.started {
            drop(alarms);
            // Without a thread that waits, the future is polled again at once, and looks at the
            // time itself.
            waker.wake();
            return Self(at, process);
        }
        alarms.set.insert(at, waker);
        if alarms.set.first_key_value().is_some_and(|(first, _)| *first == at) {
            process.changed.notify_one();
        }
        Self(at, process)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // A parent's is left.
        if self.1.epoch == Linux::epoch() {
            let waker = self.1.lock().set.remove(&self.0);
            // A value that the waker drops may set another alarm.
            drop(waker);
        }
    }
}

impl Process {
    /// The alarms of the calling process.
    fn current() -> &'static Self {
        let epoch = Linux::epoch();
        // Acquire: what it is made of; pairs with the release of the exchange.
        let known = PROCESS.load(Acquire);
        // SAFETY: null, or one that was made below, and is never freed.
        if let Some(process) = unsafe { known.as_ref() }
            && process.epoch == epoch
        {
            return process;
        }
        let (alarms, changed) = (Mutex::default(), Condvar::new());
        let made = Box::into_raw(Box::new(Self { epoch, alarms, changed }));
        // Release: what it is made of; pairs with the acquires, also of the one that fails.
        match PROCESS.compare_exchange(known, made, AcqRel, Acquire) {
            // SAFETY: made above, and never freed from now on.
            Ok(_) => unsafe { &*made },
            Err(others) => {
                // SAFETY: made above, and no other code has it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread of this process has made it, and it is never freed.
                unsafe { &*others }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alarms> {
        lock(&self.alarms)
    }

    /// Wakes whose time has come, for good.
    fn serve(&self) {
        let mut alarms = self.lock();
        loop {
            let Some(first) = alarms.set.first_entry() else {
                alarms = self.changed.wait(alarms).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left_ns = first.key().0.saturating_sub(now());
            if left_ns > 0 {
                let time = Duration::from_nanos(left_ns);
                let waited = self.changed.wait_timeout(alarms, time);
                alarms = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let waker = first.remove();
            drop(alarms);
            // A waker that panics does not keep the other alarms from theirs.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                forget(panic);
            }
            alarms = self.lock();
        }
    }
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}
