//! Sleeping on a word without a node, for many waiters at a time. By default a platform has no such
//! sleep, and shares no memory with another process.

use crate::{Atomics, Deadline, Parked};

/// Waits on words, and detection of memory that processes share.
pub trait WordWaits: Atomics {
    /// Returns whether other processes may map the memory at `address`. Their threads don't know
    /// the waiters of this process, so a waiter there must check its word from time to time.
    fn is_foreign(_address: usize) -> bool {
        false
    }

    /// Returns whether the caller may sleep on a word ([`wait_on`](Self::wait_on)). One call wakes
    /// many such sleepers, and they need no node. `false` on a fiber, which would block the thread
    /// under it.
    fn waits_on_words() -> bool {
        false
    }

    /// Blocks the caller, at a place from 0 to 31, while the low half of `word` holds `low`: until
    /// a [`wake_on`](Self::wake_on) has chosen it or the deadline has passed; may also return
    /// spuriously. A waiter that was chosen does not get [`Parked::TimedOut`]. A thread that
    /// changes that half and then wakes the place wakes the waiters there that do not see the
    /// change. A wake orders nothing else: a waiter that needs to see earlier writes must acquire
    /// them from a word.
    ///
    /// Only for callers that have checked [`waits_on_words`](Self::waits_on_words).
    fn wait_on(_word: &Self::U64, _low: u32, _place: u32, _deadline: Option<Deadline>) -> Parked {
        Parked::Woken
    }

    /// Wakes up to `count` of the waiters on the word at this address at the `places`, one bit for
    /// each; returns the number of woken waiters. The address is used as a name only: the word may
    /// be gone.
    fn wake_on(_word: *const Self::U64, _places: u32, _count: u32) -> u32 {
        0
    }
}
