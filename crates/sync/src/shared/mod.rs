//! Locks and waits for memory that several processes share.
//!
//! They are types of their own, because the means that make the others small and fair mean nothing
//! in another process: waiter nodes, their names, the light unlock. These have a word and the
//! kernel's queue behind its address ([`SharedWait`]), locked exchanges, and no pointers; all zero
//! is free, unset, empty.
//!
//! A process may be killed anywhere. So no thread sleeps for longer than [`Form::BACKSTOP_NS`]
//! without a look; and a mutex knows its owner, and a readers-writer lock its writer:
//!
//! - SHARED-1: a mutex has one owner, or one that is dead. A thread that finds the owner dead owns
//!   the mutex and is told so, and so is each owner after it until one says that the guarded data
//!   is whole.
//! - SHARED-2: a sleeper has its word marked, or a wake coming, or there is one on its way that was
//!   woken and marks the word.
//! - SHARED-3: nothing of a lock, semaphore, event, latch or broadcast is touched after the
//!   exchange that releases, sets, opens or sends it.
//!
//! Those of the barrier, the readers-writer lock, the broadcast and the latch, 4 to 9, are in their
//! files.
//!
//! The processes must see the same thread numbers: one PID namespace. If a thread's number was
//! given to another thread later, its death is not seen while that other thread lives. The kernel's
//! robust list, which knows better, exists once per thread and belongs to the C library, which
//! arranges it.
//! is to arrange.

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

/// In a word that is not a barrier's or a condition variable's: a thread may sleep.
const SLEEPERS: u32 = 1 << 31;

/// Sleeps while `word` is `seen`, for as long as the form lets a thread sleep without a look.
/// `true` if that was all, or the deadline has come.
fn sleep<P: SharedWait, F: Form>(word: &P::U32, seen: u32, deadline: Option<Deadline>) -> bool {
    let until = match F::BACKSTOP_NS {
        0 => deadline,
        ns => Some(nap::earlier::<P>(deadline, ns)),
    };
    P::wait_shared(word, seen, until) == Parked::TimedOut
}

/// One turn of a thread that waits for a word that is not as it wants: marks the word and sleeps.
/// Returns the word after the sleep, or, if it had changed, as it is now; `None` if the deadline
/// has passed after a sleep. `marks` is 0 before the first sleep, and from then on the bits that
/// the caller takes the word with, because the wake that it had may have been another's.
fn mark_and_sleep<P: SharedWait, F: Form>(
    word: &P::U32,
    seen: u32,
    marks: &mut u32,
    deadline: Option<Deadline>,
) -> Option<u32> {
    // SHARED-2: marked before we sleep, and when we give up: a wake that was for us may have been
    // another's. Relaxed, all: loaded again.
    if seen & SLEEPERS == 0
        && let Err(now) = word.compare_exchange(seen, seen | SLEEPERS, Relaxed, Relaxed)
    {
        return Some(now);
    }
    if *marks != 0 && nap::passed::<P>(deadline) {
        return None;
    }
    *marks = SLEEPERS;
    // It does not matter what has ended the sleep.
    let _ = sleep::<P, F>(word, seen | SLEEPERS, deadline);
    Some(word.load(Relaxed))
}
