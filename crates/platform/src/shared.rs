//! Waiting on words that several processes share.

use crate::{Deadline, Parked, Platform, ThreadId};

/// A machine on which threads of several processes wait for each other on a word of shared memory.
/// Separate from [`Platform`], because waiter nodes and their names mean nothing in another
/// process, and not every machine has processes.
pub trait SharedWait: Platform {
    /// Blocks the calling thread while `word` holds `expected`: until [`wake_shared`] was called
    /// for it or the deadline has passed; may also return spuriously. A fiber blocks the thread
    /// under it.
    ///
    /// A thread that changes the word and calls [`wake_shared`] after that wakes the waiters that
    /// do not see the change. A wake orders nothing else: a waiter that needs to see earlier writes
    /// must acquire them from a word.
    ///
    /// [`wake_shared`]: Self::wake_shared
    fn wait_shared(word: &Self::U32, expected: u32, deadline: Option<Deadline>) -> Parked;

    /// Returns whether a thread, of any process, has ended; `false` if a later thread has got its
    /// id and runs. The threads of a zombie process, for which its parent has not waited, count as
    /// ended.
    fn ended(thread: ThreadId) -> bool {
        !Self::alive(thread)
    }

    /// Wakes up to `count` threads, of any process, that wait on the word at this address. The
    /// address is used as a name only: the word may be gone.
    fn wake_shared(word: *const Self::U32, count: u32);
}
