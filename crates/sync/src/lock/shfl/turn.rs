//! The outcomes of a wait.

use antiphon_platform::Platform;

use super::queue::Place;

/// Whether a wait ended with the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Acquired,
    TimedOut,
    /// The waiter has lost its place, and must take another: in a cohort if possible, or only in
    /// the queue.
    Anew {
        cohort: bool,
    },
    /// The waiter has left the queue as its head, and must wait
    /// [elsewhere](super::words::Words::waits_elsewhere).
    Elsewhere,
    /// The node is gone: the process has forked meanwhile, and the waiter must begin again.
    Lost,
}

/// How the wait of a waiter that is not the head ended.
pub(super) enum Turn {
    /// The waiter is the head, with or without the shuffling role.
    Head { role: bool },
    /// The waiter has the lock although it was not the head; it is the head now, or has left the
    /// queue.
    Overtook { head: bool },
    /// The last owner handed the lock to the waiter, which may have the shuffling role, and may
    /// measure its section (`lately.rs`).
    Owner { role: bool, measures: bool },
    /// The waiter has left the queue at its deadline.
    TimedOut,
    /// The same as [`Wait::Anew`].
    Anew { cohort: bool },
    /// The same as [`Wait::Lost`].
    Lost,
}

/// Where a waiter stood when it joined.
pub(super) enum Stands<P: Platform> {
    First,
    /// In the queue, behind a place that may be another wait's by now.
    Behind(Place<P>),
    /// In no queue, but behind a waiter of its socket that is in the queue.
    InCohort,
}

/// The answer to a head that wants to sleep.
#[must_use]
pub(super) enum Ask {
    /// The lock is free: take it.
    Free,
    /// The owner will wake the head.
    Noted,
    /// The owner may not see the head's name (a fence was refused): sleep in short naps.
    Doubtful,
}
