//! The outcomes of a wait.

use antiphon_platform::Platform;

use super::queue::Place;

/// Whether a wait ended with the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Acquired,
    TimedOut,
    /// The waiter has lost its place, and is to take another: in a cohort if there is one, or in
    /// the queue alone.
    Anew {
        cohort: bool,
    },
    /// The waiter has left the queue as its head, and is to wait
    /// [elsewhere](super::words::Words::waits_elsewhere).
    Elsewhere,
    /// The node is gone: the process has forked under the waiter, which must begin anew.
    Lost,
}

/// How the wait of a waiter that is not the head ended.
pub(super) enum Turn {
    /// The waiter is the head; with the shuffling role, or without.
    Head { role: bool },
    /// The waiter has the lock all the same; and it is the head, or has left the queue.
    Overtook { head: bool },
    /// The waiter has the lock, from its last owner; with the shuffling role, or without; and
    /// measures its section, or does not (`lately.rs`).
    Owner { role: bool, measures: bool },
    /// The waiter has left the queue at its deadline.
    TimedOut,
    /// As [`Wait::Anew`].
    Anew { cohort: bool },
    /// As [`Wait::Lost`].
    Lost,
}

/// Where a waiter stood when it came.
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
    /// The owner will wake us.
    Noted,
    /// The owner may fail to see us (a fence was refused): sleep in short naps.
    Doubtful,
}
