//! Condition variables that several processes share: a sequence number and a futex.
//!
//! A waiter's node has no meaning in another process, so there is no list. Every notification
//! increments a sequence number, and the waiters sleep on it with a futex.
//!
//! - A waiter reads the sequence with the mutex held, releases the mutex, and sleeps while the
//!   sequence is unchanged.
//! - A notification increments it and wakes **all** sleepers. Waking one would lose wakes: the
//!   kernel may pick a waiter that arrived after the notification, or one that is being cancelled.
//!   Waiters woken in addition to the intended one see a spurious wake.
//!
//! The number wraps after 2³² notifications; a waiter that is not scheduled during exactly that
//! many would miss them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::abi::Cond;
use crate::sys;

/// Begins a wait, with the mutex held. Returns the current sequence.
pub(crate) fn begin(cond: &Cond) -> u32 {
    // Relaxed: a notification that must reach this waiter comes from a thread that owned the mutex
    // later.
    cond.sequence.load(Relaxed)
}

/// Returns whether there was a notification after the wait began at `seen`.
pub(crate) fn is_notified(cond: &Cond, seen: u32) -> bool {
    // Acquire: what the notifier did before; pairs with the release in `notify`.
    cond.sequence.load(Acquire) != seen
}

/// Notifies all waiters.
pub(crate) fn notify(cond: &Cond) {
    // Relaxed inside: as in `begin`. A waiter is counted before it releases the mutex.
    if cond.inside.is_empty() {
        return;
    }
    // Release: pairs with the acquire in `is_notified`.
    cond.sequence.fetch_add(1, Release);
    sys::wake_all(&cond.sequence);
}
