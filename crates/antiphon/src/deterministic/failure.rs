//! The error of a run that has failed.

use std::fmt;
use std::time::Duration;

use super::Schedule;

/// A run that has failed. Its text, which `unwrap` also shows, contains the end of the schedule.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the run.
    pub seed: u64,
    /// The kind of failure.
    pub why: Why,
    /// The virtual time at which the failure was found, from the beginning of the run.
    pub at: Duration,
    /// The events until the failure.
    pub schedule: Schedule,
}

/// The ways in which a run fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The closure has panicked, or the policy has.
    Panicked(String),
    /// A task has panicked, and its result was not asked for.
    TaskPanicked {
        /// The number of the task in the [`Schedule`]; 0 if the policy has panicked, or a
        /// destructor of a value of a task.
        task: u64,
        /// The message of the panic.
        message: String,
    },
    /// All threads and tasks wait, and no timer is set.
    Deadlock,
    /// The [limit](super::Runner::limit) of virtual time has passed.
    Overrun,
    /// All workers have ended, and some tasks did not run. This is a defect of the policy, or of
    /// this library.
    Lost,
}

/// Maximum number of steps of the schedule in the text.
const SHOWN: usize = 60;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.at.as_nanos();
        let (whole, rest) = (ns / 1_000, ns % 1_000);
        writeln!(f, "seed {} fails after {whole}.{rest:03} µs (virtual): {}", self.seed, self.why)?;
        let unfinished: Vec<_> = self.schedule.unfinished().collect();
        if !unfinished.is_empty() {
            writeln!(f, "tasks that have not ended, and their last events:")?;
            unfinished.iter().take(SHOWN).try_for_each(|step| writeln!(f, "{step}"))?;
            write_more(f, unfinished.len().saturating_sub(SHOWN))?;
        }
        let steps = self.schedule.steps();
        let before = steps.len().saturating_sub(SHOWN);
        writeln!(f, "schedule {:016x}:", self.schedule.fingerprint())?;
        write_more(f, before)?;
        steps[before..].iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

fn write_more(f: &mut fmt::Formatter<'_>, more: usize) -> fmt::Result {
    if more > 0 { writeln!(f, "{:>13}  {more} more", "…") } else { Ok(()) }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "the closure has panicked: {message}"),
            Self::TaskPanicked { task: 0, message } => {
                write!(f, "the policy, or a destructor of a task, has panicked: {message}")
            }
            Self::TaskPanicked { task, message } => {
                write!(f, "task {task} has panicked, and was not joined: {message}")
            }
            Self::Deadlock => write!(f, "all tasks wait, and no timer is set"),
            Self::Overrun => write!(f, "it has not ended within its limit (`Runner::limit`)"),
            Self::Lost => write!(f, "the run has ended, but some tasks were never run"),
        }
    }
}

impl std::error::Error for Failure {}
