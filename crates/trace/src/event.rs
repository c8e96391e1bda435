//! The events of a recorded thread.

/// An action of a thread. Between two events the thread computes, except for the times in
/// [`What::Off`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time, in nanoseconds since the recording began; within a thread, it never decreases.
    pub at_ns: u64,
    /// The kind of event, with its object.
    pub what: What,
}

impl What {
    /// The code of the event in the [file](mod@crate::file).
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Begins => 1,
            Self::Ends => 2,
            Self::Waits { .. } => 3,
            Self::Takes { .. } => 4,
            Self::GivesUp { .. } => 5,
            Self::Releases { .. } => 6,
            Self::Sleeps { .. } => 7,
            Self::Wakes { .. } => 8,
            Self::Notifies { .. } => 9,
            Self::Creates { .. } => 10,
            Self::Joins { .. } => 11,
            Self::Joined { .. } => 12,
            Self::Off { .. } => 13,
            Self::Asked { .. } => 14,
        }
    }
}

/// The kinds of events. Numbers are indices in the tables of the [`Trace`](crate::Trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their names say: places in tables")]
pub enum What {
    /// The thread begins.
    Begins,
    /// The thread ends.
    Ends,
    /// The thread begins to wait for a lock that is not free.
    Waits { lock: u32, site: u32 },
    /// The thread gets the lock, after the preceding wait or at once. `shared`: for reading,
    /// together with others. `tried`: by a call that does not wait.
    Takes { lock: u32, site: u32, shared: bool, tried: bool },
    /// The thread doesn't get the lock: it only tried, or its deadline passed.
    GivesUp { lock: u32 },
    /// The thread releases the lock.
    Releases { lock: u32 },
    /// The thread waits on a condition variable. The release of the mutex precedes this event, and
    /// its acquisition follows [`Wakes`](Self::Wakes).
    Sleeps { condition: u32, site: u32 },
    /// The wait on the condition variable is over, by a notification or without one.
    Wakes { condition: u32, notified: bool },
    /// The thread notifies one waiter of a condition variable, or `all`.
    Notifies { condition: u32, all: bool },
    /// The thread creates another thread.
    Creates { thread: u32 },
    /// The thread waits until another thread has ended.
    Joins { thread: u32 },
    /// The wait for the end of that thread is over.
    Joined { thread: u32 },
    /// The time since the previous event in which the thread did not compute: `blocked` voluntarily
    /// in something that isn't recorded (a device, a pipe, a timer), `queued` while other threads
    /// had its CPU. Precedes the event that ends the span, at the same time.
    Off { blocked_ns: u64, queued_ns: u64 },
    /// The duration of the recorder's query to the kernel, after the previous event, for the time
    /// that the thread was off its CPU. It is time of the thread, but not work of the program.
    /// Follows the previous event, at the same time.
    Asked { ns: u64 },
}
