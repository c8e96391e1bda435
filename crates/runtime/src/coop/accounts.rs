//! CPU time of threads, as the system reports it.

use antiphon_platform::ThreadId;

/// Access to the system's accounts of its threads.
pub trait Accounts {
    /// The CPU time that the calling thread has had since its start, in nanoseconds.
    fn own_ns(&mut self) -> u64;

    /// The system's view of another thread, of any process.
    fn of(&mut self, thread: ThreadId) -> Seen;
}

/// A thread, as the system sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The CPU time that the thread has had since its start, in nanoseconds; `None` where the
    /// system does not tell.
    pub ran_ns: Option<u64>,
    /// The activity of the thread.
    pub doing: Doing,
}

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The thread has a CPU, or is ready to run.
    Runs,
    /// The thread waits for something, or is stopped.
    Sleeps,
    /// Not reported by the system: a thread that is late is assumed to have run.
    Unknown,
}

impl Seen {
    /// The result for systems that report nothing.
    pub const NOTHING: Self = Self { ran_ns: None, doing: Doing::Unknown };
}
