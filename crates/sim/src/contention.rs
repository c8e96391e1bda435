//! The workload that locks are compared by: threads that take one lock over and over.

use std::cell::Cell;
use std::rc::Rc;

use crate::workload::{Access, OwnLine, Owns, count, finished, owns, think, touch, work};
use crate::{Machine, Model, Outcome, Simulation, Stuck};

/// How long a critical section computes, and how long a thread stays away at most, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The critical section, beside its two lines.
    pub section_ns: u64,
    /// The most that a thread stays away.
    pub away_ns: u64,
}

/// The functions that take a lock, and give it back.
pub type Use<L> = (fn(&L), fn(&L));

/// Threads that contend for one lock.
#[derive(Clone, Debug)]
pub struct Contention {
    /// The machine on which they contend.
    pub machine: Machine,
    /// The assumptions beyond the machine.
    pub model: Model,
    /// The seed of all randomness.
    pub seed: u64,
    /// How many threads contend.
    pub threads: usize,
    /// How often the threads want the lock, and for how long.
    pub pace: Pace,
    /// Until when operations count, in nanoseconds of simulated time.
    pub limit_ns: u64,
}

impl Contention {
    /// Lets the threads take `lock` over and over; each critical section writes two lines and is
    /// one operation. The machine knows which thread owns the lock, so [`Counts`](crate::Counts)
    /// tells the owner's atomic instructions from those of others.
    ///
    /// # Errors
    ///
    /// See [`Simulation::run`].
    ///
    /// # Panics
    ///
    /// If two threads own the lock at a time.
    pub fn run<L: 'static>(self, lock: L, (take, give): Use<L>) -> Result<Outcome, Stuck> {
        struct Shared<L> {
            lock: OwnLine<L>,
            data: OwnLine<[u64; 16]>,
            owned: Cell<bool>,
        }
        let Self { machine, model, seed, threads, pace, limit_ns } = self;
        let data = OwnLine([0; 16]);
        let shared = Rc::new(Shared { lock: OwnLine(lock), data, owned: Cell::new(false) });
        Simulation::new(machine, seed)
            .model(model)
            .threads(threads, move |_| {
                while !finished() {
                    take(&shared.lock);
                    owns(Owns::Yes);
                    assert!(!shared.owned.replace(true), "two owners at a time");
                    touch(&shared.data.0, Access::Write);
                    work(pace.section_ns);
                    assert!(shared.owned.replace(false));
                    owns(Owns::GivesBack);
                    give(&shared.lock);
                    owns(Owns::No);
                    count();
                    think(pace.away_ns);
                }
            })
            .run(limit_ns)
    }
}

/// [`Contention`] under the usual assumptions, with the same seed each time.
///
/// # Errors
///
/// See [`Contention::run`].
///
/// # Panics
///
/// See [`Contention::run`].
pub fn contend<L: 'static>(
    machine: Machine,
    threads: usize,
    pace: Pace,
    limit_ns: u64,
    lock: L,
    usage: Use<L>,
) -> Result<Outcome, Stuck> {
    let model = Model::default();
    Contention { machine, model, seed: 7, threads, pace, limit_ns }.run(lock, usage)
}
