//! The workload for comparing locks: threads that repeatedly take one lock.

use std::cell::Cell;
use std::rc::Rc;

use crate::workload::{Access, OwnLine, Owns, count, finished, owns, think, touch, work};
use crate::{Machine, Model, Outcome, Simulation, Stuck};

/// The length of a critical section, and the longest time between two of a thread, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The length of the critical section, in addition to its two lines.
    pub section_ns: u64,
    /// The longest time that a thread stays away from the lock.
    pub away_ns: u64,
}

/// The functions that acquire and release a lock.
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
    /// The number of threads that contend.
    pub threads: usize,
    /// The times in and between critical sections.
    pub pace: Pace,
    /// The time until which operations count, in nanoseconds of simulated time.
    pub limit_ns: u64,
}

impl Contention {
    /// Makes the threads take `lock` repeatedly; each critical section writes two lines and is one
    /// operation. The machine knows which thread owns the lock, so [`Counts`](crate::Counts)
    /// distinguishes the owner's atomic instructions from those of others.
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

/// Runs [`Contention`] with the default assumptions and a fixed seed.
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
