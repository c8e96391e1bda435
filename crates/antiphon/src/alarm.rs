//! Deadlines of what futures wait for: a thread that wakes them, started with the first.

use std::collections::BTreeMap;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Deadline, Platform as _};
use antiphon_runtime::select;

/// When, in nanoseconds of the monotonic clock, and a number, as several may have that.
type At = (u64, u64);

struct Alarms {
    set: BTreeMap<At, Waker>,
    next: u64,
    started: bool,
}

static ALARMS: Mutex<Alarms> = Mutex::new(Alarms { set: BTreeMap::new(), next: 0, started: false });
static CHANGED: Condvar = Condvar::new();

/// One that is set; put off when it is dropped.
pub(crate) struct Alarm(At);

impl select::Alarm<Linux> for Alarm {
    fn new(deadline: Deadline, waker: &Waker) -> Self {
        let left_ns = deadline.ns.saturating_sub(Linux::now(deadline.clock));
        let mut alarms = lock();
        let at = (now().saturating_add(left_ns), alarms.next);
        alarms.next += 1;
        if !alarms.started {
            let thread = thread::Builder::new().name("antiphon-alarm".into());
            alarms.started = thread.spawn(serve).is_ok();
        }
        if alarms.started {
            alarms.set.insert(at, waker.clone());
        } else {
            // It looks for itself.
            waker.wake_by_ref();
        }
        if alarms.set.first_key_value().is_some_and(|(first, _)| *first == at) {
            CHANGED.notify_one();
        }
        Self(at)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let waker = lock().set.remove(&self.0);
        // What it drops may set another.
        drop(waker);
    }
}

/// Wakes whose time has come, for good.
fn serve() {
    let mut alarms = lock();
    loop {
        let Some(first) = alarms.set.first_entry() else {
            alarms = CHANGED.wait(alarms).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left_ns = first.key().0.saturating_sub(now());
        if left_ns > 0 {
            let time = Duration::from_nanos(left_ns);
            let waited = CHANGED.wait_timeout(alarms, time);
            alarms = waited.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        let waker = first.remove();
        drop(alarms);
        // One that panics keeps no others from theirs.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            forget(panic);
        }
        alarms = lock();
    }
}

fn lock() -> MutexGuard<'static, Alarms> {
    ALARMS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn now() -> u64 {
    Linux::now(Clock::Monotonic)
}
