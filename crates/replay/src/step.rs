//! What a thread of a plan does.

/// One thing that a thread does. Locks, sites and tokens are places in the tables of the
/// [`Plan`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes for that long.
    Compute {
        /// CPU time.
        ns: u64,
    },
    /// Is away for that long, and needs no CPU.
    Block {
        /// From leaving the CPU until it goes on.
        ns: u64,
    },
    /// Takes a lock, and waits for it if need be.
    Lock {
        /// Which.
        lock: u32,
        /// From where.
        site: u32,
        /// Beside others, to read.
        shared: bool,
    },
    /// Gives it back.
    Unlock {
        /// Which.
        lock: u32,
    },
    /// Waits until something has been signalled as often as it has to be.
    Await {
        /// What.
        token: u32,
        /// How long that took as recorded.
        took_ns: u64,
    },
    /// Signals it once.
    Signal {
        /// What.
        token: u32,
    },
}

/// A step, and when it was in the recording: when it began, but an [`Await`](Step::Await) when it
/// was over. So a step that waits for another never stands before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Nanoseconds since the recording began.
    pub at_ns: u64,
    /// What was done.
    pub step: Step,
}
