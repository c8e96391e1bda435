//! Condition variables that several processes share.
//!
//! A waiter's node means nothing in another process, so there is no list: a sequence number that
//! every notification moves, and a futex on it.
//!
//! - A waiter reads the sequence with the mutex held, releases the mutex, and sleeps while the
//!   sequence has not moved.
//! - A notification moves it and wakes **all** sleepers. To wake one would lose wakes: the kernel
//!   may pick a waiter that came after the notification, or one that is just being cancelled. A
//!   waiter that was woken beside the intended one sees a spurious wake.
//!
//! The number wraps after 2³² notifications; a waiter that is not scheduled during exactly that
//! many would miss them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::abi::Cond;
use crate::sys;

/// Begins a wait, with the mutex held: what the sequence is now.
pub(crate) fn begin(cond: &Cond) -> u32 {
    // Relaxed: a notification that must reach us comes from a thread that had the mutex after us.
    cond.sequence.load(Relaxed)
}

/// Whether there was a notification after the wait began at `seen`.
pub(crate) fn is_notified(cond: &Cond, seen: u32) -> bool {
    // Acquire: the notifier's past; pairs with the release in `notify`.
    cond.sequence.load(Acquire) != seen
}

/// Notifies all that wait.
pub(crate) fn notify(cond: &Cond) {
    // Relaxed inside: as in `begin`. A waiter is counted before it releases the mutex.
    if cond.inside.is_empty() {
        return;
    }
    // Release: pairs with the acquire in `is_notified`.
    cond.sequence.fetch_add(1, Release);
    sys::wake_all(&cond.sequence);
}
