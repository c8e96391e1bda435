//! Events of a thread.

/// Something that a thread did. Between two events a thread computes, but for what
/// [`What::Off`] takes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time, in nanoseconds since the recording began; of one thread, never less than before.
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

/// The kinds of events. Numbers are places in the tables of the [`Trace`](crate::Trace).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are what their names say: places in tables")]
pub enum What {
    /// The thread begins.
    Begins,
    /// The thread ends.
    Ends,
    /// The thread comes to a lock that it can't have at once, and waits.
    Waits { lock: u32, site: u32 },
    /// The thread has the lock: after the wait before, or at once. `shared`: beside others, to
    /// read. `tried`: it would not have waited.
    Takes { lock: u32, site: u32, shared: bool, tried: bool },
    /// The thread doesn't get the lock: it only tried, or its time ran out.
    GivesUp { lock: u32 },
    /// The thread releases the lock.
    Releases { lock: u32 },
    /// The thread waits on a condition variable. The release of the mutex stands before this event,
    /// and the event that it has it again stands behind [`Wakes`](Self::Wakes).
    Sleeps { condition: u32, site: u32 },
    /// That wait is over: by a notification, or without one.
    Wakes { condition: u32, notified: bool },
    /// The thread notifies one waiter of a condition variable, or `all`.
    Notifies { condition: u32, all: bool },
    /// The thread makes a thread.
    Creates { thread: u32 },
    /// The thread waits until another has ended.
    Joins { thread: u32 },
    /// That wait is over.
    Joined { thread: u32 },
    /// How long the thread did not compute in the time since the event before: `blocked` of its own
    /// accord in something that isn't recorded (a device, a pipe, a timer), `queued` while others
    /// had its CPU. Comes before the event that ends the span, at the same time.
    Off { blocked_ns: u64, queued_ns: u64 },
    /// How long the recorder asked the kernel, from the event before on, how long the thread was
    /// off its CPU: time of the thread, and no work of the program. Comes behind the event before,
    /// at the same time.
    Asked { ns: u64 },
}
