//! A step of a thread of a plan.

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
        /// The lock.
        lock: u32,
        /// The site at which the thread takes it.
        site: u32,
        /// The thread has the lock beside others, to read.
        shared: bool,
    },
    /// Gives a lock back.
    Unlock {
        /// The lock.
        lock: u32,
    },
    /// Waits until a token has been signalled as often as it has to be.
    Await {
        /// The token.
        token: u32,
        /// How long the wait took as recorded.
        took_ns: u64,
    },
    /// Signals a token once.
    Signal {
        /// The token.
        token: u32,
    },
}

/// A step, and when it was in the recording: when it began, but an [`Await`](Step::Await) when it
/// was over. So a step that waits for another never stands before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Nanoseconds since the recording began.
    pub at_ns: u64,
    /// The step.
    pub step: Step,
}
