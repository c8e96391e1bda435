//! A lock on a machine that a crowd of strangers wants: hundreds of threads that never sleep.

use std::cell::Cell;
use std::rc::Rc;

use antiphon_rivals::classic::Futex;
use antiphon_sim::{
    Access, Machine, Model, OwnLine, Sim, Simulation, count, finished, think, touch, work,
};
use antiphon_sync::lock::{Lock, ShflMutex};

const SECONDS: u64 = 10;

/// The number of times that eight threads have a lock for a moment, on two CPUs among `crowd`
/// strangers.
fn acquisitions<L: Lock + 'static>(crowd: usize, seed: u64) -> f64 {
    const THREADS: usize = 8;
    let shared = Rc::new((OwnLine(L::NEW), OwnLine([0_u64; 16]), Cell::new(0_u64)));
    let seen = Rc::clone(&shared);
    let machine = Machine { slice_ns: 3_000_000, ..Machine::two_sockets().shape(1, 2) };
    // A woken thread has its turn when all that want its CPU have had theirs: the worst for locks
    // whose waiters sleep.
    let model = Model { fair: false, ..Model::default() };
    let outcome = Simulation::new(machine, seed)
        .model(model)
        .threads(THREADS, move |_| {
            while !finished() {
                let (lock, data, had) = &*shared;
                lock.0.lock();
                touch(&data.0, Access::Write);
                work(30);
                // SAFETY: locked above.
                unsafe { lock.0.unlock() };
                had.set(had.get() + 1);
                count();
                think(60);
            }
        })
        .threads(crowd, |_| {
            while !finished() {
                work(500_000);
            }
        })
        .grace_ns(60_000_000_000)
        .run(SECONDS * 1_000_000_000);
    let _ = outcome.unwrap_or_else(|stuck| panic!("{stuck}"));
    seen.2.get() as f64
}

/// A lock that is kept for a head without a CPU stands idle for a turn of the whole crowd. A futex
/// is never kept, so what the difference is fairness costs.
#[test]
fn fairness_costs_little_among_hundreds_of_strangers() {
    let ratios = (1..=4).map(|seed| {
        acquisitions::<ShflMutex<Sim>>(300, seed) / acquisitions::<Futex<Sim>>(300, seed)
    });
    let mean = (ratios.map(f64::ln).sum::<f64>() / 4.0).exp();
    // 0.74 where patience ended after a second.
    assert!(mean > 0.85, "{mean:.2} of what a futex does");
}
