//! A snapshot of the workers of a crew, for observers.
//!
//! The figures are read from words that exist for other reasons, and no worker is stopped: so they
//! cost workers nothing. Each figure is read separately, so they are no consistent snapshot.

use alloc::vec::Vec;

use antiphon_platform::Platform;
use antiphon_sync::queue::WorkQueue;

use super::crew::Crew;
use super::policy::Policy;

/// The present activity of a crew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The existing workers.
    pub workers: Vec<Working>,
    /// By seat: the number of tasks, or blocks of tasks, in its queue, without those that the queue
    /// keeps private to its worker.
    pub queued: Vec<u64>,
    /// The number of tasks in the queue for tasks from outside, or that had no room elsewhere.
    pub shared: u64,
    /// Whether the policy has tasks in its own queues; their number is not known.
    pub policy_has_tasks: bool,
}

/// The activity of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Working {
    /// The number of the worker among all workers that may exist, with a seat and without: from 0
    /// on.
    pub number: usize,
    /// The seat that the worker has or had.
    pub seat: usize,
    /// A number that changes with each task that the worker takes, and with each unsuccessful
    /// search.
    pub turn: u64,
    /// The activity of the worker.
    pub state: State,
    /// When the worker was first seen in its task, if its seat was taken from it: nanoseconds of
    /// [`Clock::Monotonic`](antiphon_platform::Clock).
    pub since_ns: Option<u64>,
}

/// The activity of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The worker rests: it has nothing to do, and is woken for tasks, or for its awaited event.
    Rests,
    /// The worker searches for a task.
    Searches,
    /// The worker is in a task, or runs fibers.
    Runs,
    /// The worker is in a task, and another worker has its seat.
    Away,
}

impl<P: Platform, Y: Policy<P>> Crew<P, Y> {
    /// Returns the present activity of the workers. Does not block or stop them; each figure may be
    /// stale at once.
    #[must_use]
    pub fn look(&self) -> Look {
        let count = |queue: &crate::lines::Lines<Y::Queue>| queue.0.count();
        Look {
            workers: (0..self.seats.sitters()).filter_map(|number| self.working(number)).collect(),
            queued: self.queues.iter().map(count).collect(),
            shared: self.shared.len() + self.surplus.len(),
            policy_has_tasks: self.policy.has_tasks(),
        }
    }

    /// Returns whether all workers that have a seat rest, and no task is visible; may be stale at
    /// once.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.idlers.all_rest() && !self.has_tasks()
    }

    fn working(&self, number: usize) -> Option<Working> {
        let (turn, is_outside) = self.seats.turn_of(number)?;
        let seat = self.seats.seat_of(number)?;
        let state = match is_outside {
            _ if self.seats.is_away(number) => State::Away,
            true => State::Runs,
            false if self.idlers.rests(seat) => State::Rests,
            false => State::Searches,
        };
        let since_ns = self.seats.away_since_ns(number);
        Some(Working { number, seat, turn: turn.number(), state, since_ns })
    }
}
