//! The schedule of a run: which task ran when, and on which worker.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The events of all tasks, with the worker and the time, in the order of time. Two equal schedules
/// come from equal runs; their texts are equal byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    steps: Vec<Step>,
}

/// An event of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The virtual time since the run began.
    pub at: Duration,
    /// The thread on which it happened.
    pub by: By,
    /// The number of the task, from 1 in the order of spawning; 0 is the closure of the run.
    pub task: u64,
    /// The kind of event.
    pub what: What,
}

/// A thread of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The thread that runs the closure of the run.
    Outside,
    /// A worker, counted from 0.
    Worker(usize),
    /// The thread that wakes tasks that [sleep](super::sleep).
    Timers,
}

/// The events of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The task is made.
    Spawned,
    /// The task is run; a future is polled.
    Began,
    /// A future waits to be woken.
    Waits,
    /// The task is done.
    Ended,
    /// The task has panicked with this message.
    Panicked(String),
}

impl Schedule {
    /// Returns all steps, the earliest first.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns a hash of the schedule's text, which is the same in each process and with each
    /// compiler.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo).
        let start = 0xcbf2_9ce4_8422_2325;
        let add = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.to_string().bytes().fold(start, add)
    }

    /// Returns the last step of each task that was not done.
    pub fn unfinished(&self) -> impl Iterator<Item = &Step> {
        let lasts: BTreeMap<_, _> = self.steps.iter().map(|step| (step.task, step)).collect();
        lasts.into_values().filter(|step| !matches!(step.what, What::Ended | What::Panicked(_)))
    }

    pub(super) fn push(&mut self, at_ns: u64, by: By, task: u64, what: What) {
        self.steps.push(Step { at: Duration::from_nanos(at_ns), by, task, what });
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.at.as_nanos();
        write!(f, "{:>9}.{:03} µs  {:9}  ", ns / 1_000, ns % 1_000, self.by.to_string())?;
        match self.task {
            0 => write!(f, "the closure"),
            task => write!(f, "task {task}"),
        }?;
        match &self.what {
            What::Spawned => write!(f, " is spawned"),
            What::Began => write!(f, " runs"),
            What::Waits => write!(f, " waits to be woken"),
            What::Ended => write!(f, " is done"),
            What::Panicked(message) => write!(f, " has panicked: {message}"),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => write!(f, "outside"),
            Self::Worker(worker) => write!(f, "worker {worker}"),
            Self::Timers => write!(f, "timers"),
        }
    }
}
