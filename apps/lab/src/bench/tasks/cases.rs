//! The cases of the benchmark of tasks, and their conditions.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::bench::neighbours::Load;
use crate::bench::rounds;
use crate::named::Named as _;

/// The work of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Case {
    /// A task spawns others that do nothing, and waits for all of them.
    SpawnJoin,
    /// The Fibonacci numbers, with a task for each call.
    ForkJoin,
    /// Tasks are spawned, and none is run.
    Idle,
    /// Tasks let each other run, again and again.
    Yield,
    /// Tasks have begun, and wait.
    Parked,
    /// A task sends another messages, through a channel with room for some.
    Channel,
    /// A task sends another one messages, as in `Channel`, but each begins on a worker of its own.
    Across,
    /// Two tasks send another messages, each through a channel of its own.
    Select,
}

impl Case {
    /// Returns whether it measures memory instead of time.
    pub fn is_memory(self) -> bool {
        matches!(self, Self::Idle | Self::Parked)
    }

    /// Returns the numbers of tasks that are spawned before they are awaited; each is a cell.
    fn batches(self, most: usize) -> Vec<usize> {
        match self {
            Self::SpawnJoin if most > SMALL => vec![most, SMALL],
            Self::SpawnJoin | Self::Idle => vec![most],
            Self::ForkJoin => vec![0],
            Self::Yield => vec![YIELDING],
            Self::Parked => vec![most.min(PARKED)],
            Self::Channel | Self::Across => vec![ROOM, 1],
            Self::Select => vec![ROOM],
        }
    }
}

/// Number of tasks of a batch that fits in caches.
const SMALL: usize = 1_000;
/// Number of tasks that yield.
const YIELDING: usize = 100;
/// Maximal number of tasks that wait: some runtimes have stacks for no more than 30 000.
const PARKED: usize = 20_000;
/// Capacity of a channel, in messages.
const ROOM: usize = 128;

/// A case with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The case.
    pub case: Case,
    /// Number of tasks that are spawned before they are awaited, 0 if they spawn each other; or the
    /// capacity of a channel, in messages.
    #[serde(default, skip_serializing_if = "is_none")]
    pub batch: usize,
    /// Number of threads that run tasks.
    pub workers: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it so")]
fn is_none(batch: &usize) -> bool {
    *batch == 0
}

impl Cell {
    /// Returns the cells of a case, with at most `most` tasks at once. A case that measures memory
    /// has one worker; a case whose tasks should be on different workers has two or more.
    pub fn of(load: Load, case: Case, workers: &[usize], most: usize) -> Vec<Self> {
        let workers = if case.is_memory() { &[1] } else { workers };
        let least = if case == Case::Across { 2 } else { 1 };
        let cell = |batch, workers| Self { load, case, batch, workers };
        let workers = workers.iter().filter(|&&workers| workers >= least);
        let cells = |batch| workers.clone().map(move |&workers| cell(batch, workers));
        case.batches(most).into_iter().flat_map(cells).collect()
    }
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl fmt::Display for Cell {
    /// Formats as in `idle spawn_join of 1000, 2 workers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.load.name(), self.case.name())?;
        if self.batch > 0 {
            write!(f, " of {}", self.batch)?;
        }
        write!(f, ", {} worker{}", self.workers, if self.workers == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_have_cells_and_names() {
        let cells = |case| Cell::of(Load::Idle, case, &[1, 2], 5_000).into_iter();
        let seen: Vec<_> = cells(Case::SpawnJoin).map(|cell| (cell.batch, cell.workers)).collect();
        assert_eq!(seen, [(5_000, 1), (5_000, 2), (1_000, 1), (1_000, 2)]);
        assert!(cells(Case::Idle).map(|cell| cell.workers).eq([1]));
        let parked = Cell::of(Load::Idle, Case::Parked, &[2], 1_000_000);
        assert_eq!((parked[0].batch, parked[0].workers, parked.len()), (PARKED, 1, 1));
        let names: Vec<_> = cells(Case::ForkJoin).map(|cell| cell.to_string()).collect();
        assert_eq!(names, ["idle fork_join, 1 worker", "idle fork_join, 2 workers"]);
        assert!(
            cells(Case::SpawnJoin).any(|c| c.to_string() == "idle spawn_join of 1000, 2 workers")
        );
    }
}
