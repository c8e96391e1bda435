//! Sleeps without a node: on a word, for many waiters at a time. By default a platform has none,
//! and no memory of its own is another process's.

use crate::{Atomics, Deadline, Parked};

/// Waits on words, and memory that processes share.
pub trait WordWaits: Atomics {
    /// Whether other processes may have the memory at `address`: their threads don't know the
    /// waiters of this one, so a waiter there has to look up from time to time.
    fn is_foreign(_address: usize) -> bool {
        false
    }

    /// Whether the caller may sleep on a word ([`wait_on`](Self::wait_on)): many such sleepers are
    /// woken by one call, and need no node. A fiber may not: it would block the thread under it.
    fn waits_on_words() -> bool {
        false
    }

    /// Blocks the caller, in a place of 0 to 31, while the low half of `word` holds `low`: until a
    /// [`wake_on`](Self::wake_on) that has chosen it, the deadline has passed, or for no reason. A
    /// waiter that was chosen does not get [`Parked::TimedOut`]. A thread that changes that half
    /// and then wakes the place wakes the waiters there that do not see the change. A wake orders
    /// nothing else: a waiter that needs to see what was done reads it from a word.
    ///
    /// Only for callers that have checked that they [may](Self::waits_on_words).
    fn wait_on(_word: &Self::U64, _low: u32, _place: u32, _deadline: Option<Deadline>) -> Parked {
        Parked::Woken
    }

    /// Wakes up to `count` of the waiters on the word at this address in one of the `places`, a bit
    /// for each; says how many these were. The address is used as a name only: the word may be
    /// gone.
    fn wake_on(_word: *const Self::U64, _places: u32, _count: u32) -> u32 {
        0
    }
}
