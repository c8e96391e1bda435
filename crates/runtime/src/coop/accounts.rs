//! Who has had how much of the CPU, as the system knows it.

use antiphon_platform::ThreadId;

/// What the system knows of its threads.
pub trait Accounts {
    /// The CPU time that the calling thread has had since it began, in nanoseconds.
    fn own_ns(&mut self) -> u64;

    /// What is known of another thread, of any process.
    fn of(&mut self, thread: ThreadId) -> Seen;
}

/// A thread, as the system sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The CPU time that it has had since it began, in nanoseconds; `None` where that is not told.
    pub ran_ns: Option<u64>,
    /// What it is about.
    pub doing: Doing,
}

/// What a thread is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It has a CPU, or would have one.
    Runs,
    /// It waits for something, or is stopped.
    Sleeps,
    /// That is not told: who is late is taken to have run.
    Unknown,
}

impl Seen {
    /// Where nothing is told.
    pub const NOTHING: Self = Self { ran_ns: None, doing: Doing::Unknown };
}
