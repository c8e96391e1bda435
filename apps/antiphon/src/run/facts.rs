//! Facts about a run that need no recording.

use std::time::Duration;

use crate::preload;
use crate::program::Obstacle;

/// The facts about a run that need no recording.
pub struct Run {
    /// CMD and its arguments.
    pub command: Vec<String>,
    /// Our lock, or `glibc`.
    pub lock: String,
    /// Whether every acquisition was recorded.
    pub profile: bool,
    /// The time from CMD's start to its end.
    pub wall: Duration,
    /// CPU time of CMD and of its descendants that were waited for, in seconds.
    pub cpu_s: f64,
    /// The part of that in the kernel.
    pub system_s: f64,
    /// CPU time of other programs meanwhile, on the CPUs that CMD may use, in seconds, and that
    /// which a hypervisor took. `None` if the kernel does not tell.
    pub others_s: Option<f64>,
    /// Number of CPUs that CMD may use.
    pub cpus: usize,
    /// How CMD ended, in words.
    pub ended: String,
    /// The obstacle that kept the library out of CMD, as far as CMD's file shows.
    pub kept_out: Option<KeptOut>,
    /// Whether programs that CMD executes had the library, too.
    pub children: bool,
    /// Entries of `--sites` that nothing matched; `None` without that option.
    pub unmatched: Option<Vec<String>>,
    /// Why CMD's threads were not sampled from outside, if they were not.
    pub unsampled: Option<String>,
    /// Why there is no recording, if there is none.
    pub untaped: Option<String>,
}

#[cfg(test)]
impl Run {
    /// A run of `program` under `lock` that succeeded, with no notes.
    pub fn of_program(lock: &str) -> Run {
        Run {
            command: vec!["program".to_owned()],
            lock: lock.to_owned(),
            profile: false,
            wall: Duration::ZERO,
            cpu_s: 0.0,
            system_s: 0.0,
            others_s: None,
            cpus: 1,
            ended: "exit code 0".to_owned(),
            kept_out: None,
            children: true,
            unmatched: None,
            unsampled: None,
            untaped: None,
        }
    }
}

/// Why the library does not get into CMD.
pub struct KeptOut {
    /// The program, the reason and the remedy.
    pub why: String,
    /// Whether the library does get into the programs that CMD starts.
    pub only_cmd: bool,
}

impl KeptOut {
    /// Describes `obstacle`. `no_children` tells that only CMD should be reached.
    pub fn new(obstacle: Obstacle, no_children: bool) -> Self {
        Self { why: obstacle.why, only_cmd: obstacle.hands_on && !no_children }
    }

    /// The sentence before the run; `what` would have been done to locks.
    pub fn beforehand(&self, what: &str) -> String {
        let why = &self.why;
        if self.only_cmd {
            format!("nothing will be {what} in CMD, only in programs that it starts: {why}")
        } else {
            format!("nothing will be {what}: {why}")
        }
    }

    /// The sentence after the run.
    pub fn afterwards(&self, what: &str) -> String {
        let why = &self.why;
        let where_not = if self.only_cmd { " in CMD itself" } else { "" };
        format!("Nothing was {what}{where_not}: {why}.")
    }
}

impl Run {
    /// Returns whether CMD was observed only from outside, without a library in it.
    pub fn is_outside(&self) -> bool {
        self.lock == preload::GLIBC && !self.profile
    }
}
