//! Locks and waits for memory that several processes share.
//!
//! They are separate types, because the means that make the others small and fair do not work
//! across processes: waiter nodes, their names, the light unlock. These have a word and the
//! kernel's queue for its address ([`SharedWait`]), locked exchanges, and no pointers; all zero
//! bytes is free, unset, empty.
//!
//! A process may be killed anywhere. So no thread sleeps for longer than [`Form::BACKSTOP_NS`]
//! without a check; and a mutex records its owner, and a readers-writer lock its writer:
//!
//! - SHARED-1: a mutex has at most one owner, alive or dead. A thread that finds the owner dead
//!   becomes the owner and is told of the death, as is each owner after it until one declares that
//!   the guarded data is whole.
//! - SHARED-2: a sleeper has its word marked, or has a wake coming, or another thread was woken and
//!   will mark the word.
//! - SHARED-3: nothing of a lock, semaphore, event, latch or broadcast is touched after the
//!   exchange that releases, sets, opens or sends it.
//!
//! SHARED-4 to SHARED-9, of the barrier, the readers-writer lock, the broadcast and the latch, are
//! in their files.
//!
//! The processes must see the same thread numbers: one PID namespace. If a thread's number was
//! given to another thread later, its death is not seen while that other thread lives. The kernel's
//! robust list has no such limit, but exists once per thread and belongs to the C library, which
//! arranges it.

mod barrier;
mod broadcast;
mod condvar;
mod event;
mod latch;
mod mutex;
mod rwlock;
mod semaphore;

pub use barrier::{MAX_PARTIES, SharedBarrier};
pub use broadcast::{SharedBroadcast, SharedGeneration};
pub use condvar::SharedCondvar;
pub use event::SharedEvent;
pub use latch::SharedLatch;
pub use mutex::{Acquired, SharedMutex};
pub use rwlock::SharedRwLock;
pub use semaphore::SharedSemaphore;

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Deadline, Parked, SharedWait};

use crate::lock::Form;
use crate::nap;

/// In the words of all types except the barrier and the condition variable: a thread may sleep.
const SLEEPERS: u32 = 1 << 31;

/// Sleeps while `word` is `seen`, for as long as the form lets a thread sleep without a check.
/// Returns `true` if this time or the deadline has passed.
fn sleep<P: SharedWait, F: Form>(word: &P::U32, seen: u32, deadline: Option<Deadline>) -> bool {
    let until = match F::BACKSTOP_NS {
        0 => deadline,
        ns => Some(nap::earlier::<P>(deadline, ns)),
    };
    P::wait_shared(word, seen, until) == Parked::TimedOut
}

/// One round of a wait for a word to change: marks the word and sleeps. Returns the word after the
/// sleep, or, if it had changed before, its present value; `None` if the deadline has passed after
/// a sleep. `marks` is 0 before the first sleep, and from then on the bits that the caller must set
/// when it takes the word, because the wake that it got may have been meant for another thread.
fn mark_and_sleep<P: SharedWait, F: Form>(
    word: &P::U32,
    seen: u32,
    marks: &mut u32,
    deadline: Option<Deadline>,
) -> Option<u32> {
    // SHARED-2: marked before we sleep, and when we give up: a wake that we got may have been meant
    // for another thread. Relaxed, all: loaded again.
    if seen & SLEEPERS == 0
        && let Err(now) = word.compare_exchange(seen, seen | SLEEPERS, Relaxed, Relaxed)
    {
        return Some(now);
    }
    if *marks != 0 && nap::passed::<P>(deadline) {
        return None;
    }
    *marks = SLEEPERS;
    // It does not matter why the sleep ended.
    let _ = sleep::<P, F>(word, seen | SLEEPERS, deadline);
    Some(word.load(Relaxed))
}
