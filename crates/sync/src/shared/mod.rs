//! Locks and waits for memory that several processes share.
//!
//! They are types of their own, since what makes the others small and fair means nothing in another
//! process: waiter nodes, their names, the light unlock. These have a word and the kernel's queue
//! behind its address ([`SharedWait`]), locked exchanges, and no pointers; all zero is free, unset,
//! empty.
//!
//! A process may be killed anywhere. So nobody sleeps for longer than [`Form::BACKSTOP_NS`] without
//! a look, and a mutex knows its owner, as a readers-writer lock its writer:
//!
//! - SHARED-1: a mutex has one owner, or one that is dead. Who finds the owner dead owns it and is
//!   told so, and so is each owner after it until one says that what the lock guards is whole.
//! - SHARED-2: a sleeper has its word marked, or a wake coming, or one on its way that was woken
//!   and marks the word.
//! - SHARED-3: nothing of a lock, semaphore, event, latch or broadcast is touched after the
//!   exchange that releases, sets, opens or sends it.
//!
//! Those of the barrier, the readers-writer lock, the broadcast and the latch, 4 to 9, are in their
//! files.
//!
//! The processes must see the same thread numbers: one PID namespace. A number that was given to
//! another thread since stands for its former owner: then its death is not seen while that lives.
//! The kernel's robust list, which knows better, is one a thread and the C library's, whose list it
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

/// In the word of what is not a barrier or a condition variable: somebody may sleep.
const SLEEPERS: u32 = 1 << 31;

/// Sleeps while `word` is `seen`, for as long as the form lets anybody sleep without a look.
/// `true` if that was all, or the deadline has come.
fn sleep<P: SharedWait, F: Form>(word: &P::U32, seen: u32, deadline: Option<Deadline>) -> bool {
    let until = match F::BACKSTOP_NS {
        0 => deadline,
        ns => Some(nap::earlier::<P>(deadline, ns)),
    };
    P::wait_shared(word, seen, until) == Parked::TimedOut
}

/// One turn of who waits for a word that is not as it wants: marks it and sleeps. Returns what the
/// word is then, or, if it had changed, is now; `None` if the deadline has passed after a sleep.
/// `marks` is 0 before the first sleep, and from then on what the caller takes the word with, as
/// the wake that it had may have been another's.
fn mark_and_sleep<P: SharedWait, F: Form>(
    word: &P::U32,
    seen: u32,
    marks: &mut u32,
    deadline: Option<Deadline>,
) -> Option<u32> {
    // SHARED-2: marked before we sleep, and when we give up: a wake that was for us may have been
    // another's. Relaxed, all: looked at again.
    if seen & SLEEPERS == 0
        && let Err(now) = word.compare_exchange(seen, seen | SLEEPERS, Relaxed, Relaxed)
    {
        return Some(now);
    }
    if *marks != 0 && nap::passed::<P>(deadline) {
        return None;
    }
    *marks = SLEEPERS;
    // Whatever has ended it.
    let _ = sleep::<P, F>(word, seen | SLEEPERS, deadline);
    Some(word.load(Relaxed))
}
