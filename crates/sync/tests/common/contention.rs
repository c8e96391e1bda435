//! Simulated threads that take one lock over and over.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_sim::{Access, Machine, Outcome, OwnLine, Simulation};
use antiphon_sync::lock::Lock;

/// How long a critical section computes, and how long a thread stays away at most, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Pace {
    pub section_ns: u64,
    pub away_ns: u64,
}

/// `threads` threads take one lock over and over; each critical section writes two lines and is
/// checked to be alone.
pub fn contend<L: Lock>(machine: Machine, threads: usize, pace: Pace, limit_ns: u64) -> Outcome {
    struct Shared<L> {
        lock: OwnLine<L>,
        data: OwnLine<[u64; 16]>,
        owned: Cell<bool>,
    }
    let shared =
        Rc::new(Shared { lock: OwnLine(L::NEW), data: OwnLine([0; 16]), owned: Cell::new(false) });
    Simulation::new(machine, 7)
        .threads(threads, move |_| {
            while !antiphon_sim::finished() {
                shared.lock.lock();
                assert!(!shared.owned.replace(true), "two owners at a time");
                antiphon_sim::touch(&shared.data.0, Access::Write);
                antiphon_sim::work(pace.section_ns);
                assert!(shared.owned.replace(false));
                // SAFETY: locked above.
                unsafe { shared.lock.unlock() };
                antiphon_sim::count();
                antiphon_sim::think(pace.away_ns);
            }
        })
        .run(limit_ns)
        .unwrap_or_else(|stuck| panic!("{stuck}"))
}
