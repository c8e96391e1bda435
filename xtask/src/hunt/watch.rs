//! The watchdog: detects hangs from repeated checks of the board.
//!
//! Time counts only while the program could run: not while it was stopped, and not while the
//! watchdog itself was delayed. So a slow machine is not taken for a hang.

use std::fmt;
use std::time::Duration;

use super::board::{Role, Snapshot};

/// The state of a watchdog between two checks.
pub struct Watch {
    patience: Duration,
    workers: Vec<Still>,
    all_still: Duration,
}

/// A worker's progress at the last check, and the time for which it has not changed.
#[derive(Clone, Copy, Default)]
struct Still {
    progress: u64,
    time: Duration,
}

/// The workers that make no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hang {
    /// All workers that use a lock.
    All,
    /// The worker of this slot, while others make progress.
    One(usize, Role),
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => write!(f, "no worker makes progress"),
            Self::One(slot, role) => write!(f, "worker {slot} ({role:?}) makes no progress"),
        }
    }
}

impl Watch {
    /// A watchdog that reports a hang when no worker has made progress for `patience`, or one
    /// worker for twice as long.
    pub fn new(patience: Duration) -> Self {
        Self { patience, workers: Vec::new(), all_still: Duration::ZERO }
    }

    /// Checks the board; `ran` is how long the program has run after the previous check.
    pub fn look(&mut self, ran: Duration, board: &Snapshot) -> Option<Hang> {
        self.workers.resize(board.workers.len(), Still::default());
        let (mut waiting, mut moved) = (false, false);
        let mut stuck = None;
        // A pest waits for its child, which may be slow on a busy machine, and has its own row.
        let child = board.workers.iter().any(|worker| worker.role == Role::Child);
        for (slot, (worker, still)) in board.workers.iter().zip(&mut self.workers).enumerate() {
            let moves = worker.progress != still.progress;
            let excused = worker.role == Role::Absent || (worker.role == Role::Pest && child);
            let time = if moves || excused { Duration::ZERO } else { still.time + ran };
            *still = Still { progress: worker.progress, time };
            if !matches!(worker.role, Role::Absent | Role::Pest | Role::Neighbour) {
                waiting = true;
                moved |= moves;
            }
            if time > 2 * self.patience {
                stuck = stuck.or(Some(Hang::One(slot, worker.role)));
            }
        }
        self.all_still = if moved || !waiting { Duration::ZERO } else { self.all_still + ran };
        if self.all_still > self.patience { Some(Hang::All) } else { stuck }
    }
}

#[cfg(test)]
mod tests {
    use super::super::board::Worker;
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The hang that is found within `looks` checks of workers of which some make progress.
    fn found(workers: &[(Role, bool)], looks: u64, ran: Duration) -> Option<Hang> {
        let mut watch = Watch::new(5 * SECOND);
        (0..looks).find_map(|look| {
            let worker = |&(role, moves)| Worker { role, progress: if moves { look } else { 0 } };
            let workers = workers.iter().map(worker).collect();
            watch.look(ran, &Snapshot { workers, ..Snapshot::default() })
        })
    }

    #[test]
    fn nobody_gets_on() {
        let workers = [(Role::Locker, false), (Role::Member, false)];
        assert_eq!(found(&workers, 5, SECOND), None);
        assert_eq!(found(&workers, 6, SECOND), Some(Hang::All));
    }

    #[test]
    fn a_pest_and_a_neighbour_are_nobody() {
        let workers = [(Role::Pest, true), (Role::Neighbour, true), (Role::Consumer, false)];
        assert_eq!(found(&workers, 8, SECOND), Some(Hang::All));
        assert_eq!(found(&workers[..2], 100, SECOND), None);
    }

    #[test]
    fn a_pest_is_not_stuck_while_its_child_gets_on() {
        let workers = |child| [(Role::Locker, true), (Role::Pest, false), (Role::Child, child)];
        assert_eq!(found(&workers(true), 100, SECOND), None);
        assert_eq!(found(&workers(false), 11, SECOND), Some(Hang::One(2, Role::Child)));
        assert_eq!(found(&workers(true)[..2], 11, SECOND), Some(Hang::One(1, Role::Pest)));
    }

    #[test]
    fn one_worker_is_borne_for_twice_as_long() {
        let workers = [(Role::Locker, true), (Role::Member, false), (Role::Absent, false)];
        assert_eq!(found(&workers, 10, SECOND), None);
        assert_eq!(found(&workers, 11, SECOND), Some(Hang::One(1, Role::Member)));
    }

    #[test]
    fn stopped_time_does_not_count() {
        assert_eq!(found(&[(Role::Locker, false)], 1000, Duration::ZERO), None);
    }
}
