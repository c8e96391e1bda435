//! The interface between a program of this crate and its loop.
//!
//! Programs are plain state: a loop calls [`Program::run`] with a [`Job`] that was submitted, and
//! the program submits further jobs to a [`Timeline`]. So the same program runs on a real event
//! loop ([`Hosted`](crate::Hosted)) and in virtual time ([`VirtualLoop`](crate::VirtualLoop)).

/// An event of a program. The same job is submitted at most once at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job {
    /// The work to do.
    pub act: Act,
    /// The number of the object to work on: a frame, a chunk, a tick.
    pub number: u64,
}

/// The act of a job; also the type by which a loop counts tardiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// A timer: take in the work that comes into the look-ahead.
    Receive,
    /// A timer: drop the work that was not done in time.
    Expire,
    /// A timer: show a picture, play a chunk, or do a step.
    Present,
    /// Best effort: decode or draw.
    Prepare,
}

impl Act {
    /// The name of the act in reports.
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
    /// The current time, in nanoseconds.
    fn now_ns(&self) -> u64;
    /// The time until which this job may continue; `None` for no limit.
    fn until_ns(&self) -> Option<u64>;
    /// Runs `job` as soon as possible after `release_ns`, before all best effort.
    fn timer(&mut self, release_ns: u64, job: Job);
    /// Runs `job` when no job with a smaller `importance` is pending.
    fn best_effort(&mut self, importance: u64, job: Job);
    /// Removes a job; does nothing if it is not pending.
    fn cancel(&mut self, job: Job);
}

/// A program that runs on a loop, one event at a time.
pub trait Program {
    /// Submits the first jobs.
    fn start(&mut self, timeline: &mut dyn Timeline);
    /// Runs a job that it submitted.
    fn run(&mut self, job: Job, timeline: &mut dyn Timeline);
}
