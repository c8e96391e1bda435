//! How urgent threads are. By default all are alike, and none can be made more urgent.

use crate::{ThreadId, Unsupported};

/// The priorities of a platform's threads.
pub trait Urgency {
    /// How urgent the scheduler holds the calling thread to be; larger goes first. An ordinary
    /// thread of the usual niceness is [`RANK`]; nice values are 1 to 40, real-time priorities 101
    /// to 199, deadlines 255.
    fn rank() -> u8 {
        RANK
    }

    /// The [`rank`](Self::rank) of a thread that has a real-time priority: more than 100; 0 of one
    /// that shares time. Locks serve those first, the highest of them before the others. Asked when
    /// a wait begins or its waiter is about to sleep; 0 is a safe answer.
    fn urgency() -> u8 {
        match Self::rank() {
            rank if rank > 100 => rank,
            _ => 0,
        }
    }

    /// Makes `thread`, which may have ended, run as if it were at least as urgent as `rank`, until
    /// as many [`reclaim`](Self::reclaim)s have been made as loans. A loan is not lost because of
    /// another loan or its end.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where that is not possible or not permitted; then nothing was lent.
    fn lend(_thread: ThreadId, _rank: u8) -> Result<(), Unsupported> {
        Err(Unsupported)
    }

    /// Ends one loan to `thread`.
    fn reclaim(_thread: ThreadId) {}
}

/// [`Urgency::rank`] of a thread that was made neither more nor less urgent than others.
pub const RANK: u8 = 20;
