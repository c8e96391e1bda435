//! The counters of workers: each worker has its own words, which no other thread writes.

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

/// Counts of the activities of a crew's workers so far. Each is read separately, so they are no
/// consistent snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Tasks that were handed to workers. Each worker publishes its count when it looks outside: up
    /// to 60 tasks of a present worker may be missing, and for good if its seat was taken from it
    /// meanwhile.
    pub tasks: u64,
    /// Tasks that workers made ready and that were refused because there was no room.
    pub refused: u64,
    /// Number of searches for tasks of others by workers without tasks.
    pub searches: u64,
    /// Number of searches that found tasks.
    pub steals: u64,
    /// Number of seats that were given to another worker because a worker was in one task for too
    /// long.
    pub hogs: u64,
    /// The duration of the longest task that was too long, in nanoseconds, as observed by the
    /// watchdog, which runs while not all workers rest. 0: there was none.
    pub longest_ns: u64,
    /// Number of rests of workers.
    pub rests: u64,
}

/// The counters of one worker.
pub(super) struct Counters<P: Platform> {
    tasks: P::U64,
    refused: P::U64,
    searches: P::U64,
    steals: P::U64,
    rests: P::U64,
}

impl<P: Platform> Counters<P> {
    pub(super) const NEW: Self = Self {
        tasks: P::U64::ZERO,
        refused: P::U64::ZERO,
        searches: P::U64::ZERO,
        steals: P::U64::ZERO,
        rests: P::U64::ZERO,
    };

    /// Called by the worker: `tasks` is the total number of tasks that it was handed.
    pub(super) fn take(&self, tasks: u64) {
        // Relaxed: a figure.
        self.tasks.store(tasks, Relaxed);
    }

    /// Returns how many tasks the workers of this seat were handed.
    pub(super) fn taken(&self) -> u64 {
        // Relaxed: an earlier worker has released the seat.
        self.tasks.load(Relaxed)
    }

    /// Called by the worker when it has nothing to do.
    pub(super) fn rest(&self) {
        more::<P>(&self.rests);
    }

    /// Called by the worker when a task was refused.
    pub(super) fn refuse(&self) {
        more::<P>(&self.refused);
    }

    /// Called by the worker after a search: `got` says whether it found a task.
    pub(super) fn search(&self, got: bool) {
        more::<P>(&self.searches);
        if got {
            more::<P>(&self.steals);
        }
    }

    /// Adds the counters to `sum`.
    pub(super) fn add_to(&self, sum: &mut Stats) {
        // Relaxed: figures.
        sum.tasks += self.tasks.load(Relaxed);
        sum.rests += self.rests.load(Relaxed);
        sum.refused += self.refused.load(Relaxed);
        sum.searches += self.searches.load(Relaxed);
        sum.steals += self.steals.load(Relaxed);
    }
}

fn more<P: Platform>(count: &P::U64) {
    // Relaxed: a figure, which only its worker writes.
    count.store(count.load(Relaxed) + 1, Relaxed);
}
