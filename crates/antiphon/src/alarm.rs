//! Deadlines of waiting futures: one thread wakes them, started with the first deadline.
//!
//! A child of a fork has no such thread, and perhaps a lock whose owner does not exist: it starts
//! with new alarms, and the parent's alarms are left as they were.

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

/// The time of an alarm, in nanoseconds of the monotonic clock, and a number that tells alarms of
/// the same time apart.
type At = (u64, u64);

/// The alarms of a process. Never freed.
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

/// The alarms of this process or, after a fork, of a parent; null before the first alarm.
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
            // Without the thread, the future is polled again at once, and checks the time itself.
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
        // An alarm of the parent process is left alone.
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
        // Acquire: the fields of the value; pairs with the release of the exchange.
        let known = PROCESS.load(Acquire);
        // SAFETY: the pointer is null, or was made below and is never freed.
        if let Some(process) = unsafe { known.as_ref() }
            && process.epoch == epoch
        {
            return process;
        }
        let (alarms, changed) = (Mutex::default(), Condvar::new());
        let made = Box::into_raw(Box::new(Self { epoch, alarms, changed }));
        // Release: the fields of the value; pairs with both acquires, including that of a failed
        // exchange.
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

    /// Wakes the wakers of alarms that are due. Never returns.
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
            // A waker that panics must not stop the other alarms.
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
