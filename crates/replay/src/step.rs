//! The steps of a plan's threads.

/// One step of a thread. Locks, sites and tokens are indices in the tables of the
/// [`Plan`](crate::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes for a time.
    Compute {
        /// CPU time, in nanoseconds.
        ns: u64,
    },
    /// Is blocked for a time, without a CPU.
    Block {
        /// Time from leaving the CPU until it continues, in nanoseconds.
        ns: u64,
    },
    /// Takes a lock, and waits for it if necessary.
    Lock {
        /// The lock.
        lock: u32,
        /// The site at which the thread takes it.
        site: u32,
        /// Whether the thread takes the lock to read, beside others.
        shared: bool,
    },
    /// Releases a lock.
    Unlock {
        /// The lock.
        lock: u32,
    },
    /// Waits until a token has got all its signals.
    Await {
        /// The token.
        token: u32,
        /// Recorded length of the wait, in nanoseconds.
        took_ns: u64,
    },
    /// Signals a token once.
    Signal {
        /// The token.
        token: u32,
    },
}

/// A step with its recorded time: that of its beginning, or of the end of an
/// [`Await`](Step::Await). So a step that waits for another never comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Nanoseconds since the recording began.
    pub at_ns: u64,
    /// The step.
    pub step: Step,
}
