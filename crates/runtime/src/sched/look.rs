//! A snapshot of the workers of a crew, for observers.
//!
//! The figures are read from words that exist for other reasons, and no worker is stopped: so they
//! cost workers nothing. Each figure stands by itself; no two are of the same moment.

use alloc::vec::Vec;

use antiphon_platform::Platform;
use antiphon_sync::queue::WorkQueue;

use super::crew::Crew;
use super::policy::Policy;

/// The present activity of a crew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The workers that are there.
    pub workers: Vec<Working>,
    /// By seat: how many tasks, or blocks of tasks, are in its queue, without those that the queue
    /// keeps to its worker.
    pub queued: Vec<u64>,
    /// How many tasks are in the queue for tasks from outside, or had no room elsewhere.
    pub shared: u64,
    /// Whether the policy has tasks in queues of its own: it does not say how many.
    pub policy_has_tasks: bool,
}

/// The activity of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Working {
    /// The number of the worker among all workers that may be there, with a seat and without: from
    /// 0 on.
    pub number: usize,
    /// The seat that the worker has or had.
    pub seat: usize,
    /// A number that changes with each task that the worker takes, and when it looks for one in
    /// vain.
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
    /// The worker has nothing to do: it rests, and is woken for tasks, or for what it waits for.
    Rests,
    /// The worker looks for a task.
    Searches,
    /// The worker is in a task, or in fibers.
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

    /// Whether all workers that have a seat rest, and no task is visible; may be stale at once.
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
