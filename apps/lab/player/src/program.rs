//! The interface between a program of this crate and its loop.
//!
//! Programs are plain state: a loop calls [`Program::run`] with a [`Job`] that was submitted, and
//! the program submits others by a [`Timeline`]. So the same program runs on an event loop of the
//! machine ([`Hosted`](crate::Hosted)) and on one of virtual time
//! ([`VirtualLoop`](crate::VirtualLoop)).

/// An event of a program; it is submitted at most once at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job {
    /// The work to do.
    pub act: Act,
    /// The number of the thing to work on: a frame, a chunk, a tick.
    pub number: u64,
}

/// The act of a job: also the type by which a loop counts tardiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// A timer: take in the work that comes within the look-ahead.
    Receive,
    /// A timer: drop the work that was not done in time.
    Expire,
    /// A timer: show it, play it, step.
    Present,
    /// Best effort: decode it, draw it.
    Prepare,
}

impl Act {
    /// A name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Receive => "receive",
            Self::Expire => "expire",
            Self::Present => "present",
            Self::Prepare => "prepare",
        }
    }
}

/// The services that a loop offers to the program it runs. Times are nanoseconds of its monotonic
/// clock.
pub trait Timeline {
    /// The time.
    fn now_ns(&self) -> u64;
    /// The time until which this job may go on; `None`: as long as it likes.
    fn until_ns(&self) -> Option<u64>;
    /// Runs `job` as soon after `release_ns` as can be, before all best effort.
    fn timer(&mut self, release_ns: u64, job: Job);
    /// Runs `job` when nothing of less `importance` is there.
    fn best_effort(&mut self, importance: u64, job: Job);
    /// Takes a job back; of one that isn't there, nothing happens.
    fn cancel(&mut self, job: Job);
}

/// A program: what runs on a loop, an event at a time.
pub trait Program {
    /// Submits the first jobs.
    fn start(&mut self, timeline: &mut dyn Timeline);
    /// Runs a job that it submitted.
    fn run(&mut self, job: Job, timeline: &mut dyn Timeline);
}
