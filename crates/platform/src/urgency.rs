//! The priorities of threads. By default all threads have the same priority, and none can be
//! raised.

use crate::{ThreadId, Unsupported};

/// The priorities of a platform's threads.
pub trait Urgency {
    /// The rank of the calling thread in the scheduler's order; a larger rank is served first. An
    /// ordinary thread of the usual niceness is [`RANK`]; nice values are 1 to 40, real-time
    /// priorities 101 to 199, deadlines 255.
    fn rank() -> u8 {
        RANK
    }

    /// The [`rank`](Self::rank) of a thread with a real-time priority, more than 100; 0 for a
    /// time-sharing thread. Locks serve real-time threads first, in the order of their ranks.
    /// Called when a wait begins or its waiter is about to sleep; 0 is a safe answer.
    fn urgency() -> u8 {
        match Self::rank() {
            rank if rank > 100 => rank,
            _ => 0,
        }
    }

    /// Makes `thread`, which may have ended, run with at least the rank `rank`, until
    /// [`reclaim`](Self::reclaim) has been called as often as `lend`. No loan is lost because of
    /// another loan or its end.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] where lending is not possible or not permitted; then nothing was lent.
    fn lend(_thread: ThreadId, _rank: u8) -> Result<(), Unsupported> {
        Err(Unsupported)
    }

    /// Ends one loan to `thread`.
    fn reclaim(_thread: ThreadId) {}
}

/// [`Urgency::rank`] of a thread with the default priority.
pub const RANK: u8 = 20;
