//! The mutex's two ways to unlock on machines of 192 and 1 024 CPUs: by an atomic exchange, and by
//! a restartable store that whoever begins to wait must fence off, machine-wide and one at a time.
//!
//! `cargo run --release -p antiphon-sync --example sim_unlock`

use std::rc::Rc;

use antiphon_sim::{Access, Machine, Outcome, OwnLine, Sim, Simulation};
use antiphon_sim::{count, finished, think, touch, work};
use antiphon_sync::lock::ShflMutex;

const LIMIT_NS: u64 = 2_000_000;

/// The state that the threads share.
struct Case {
    name: &'static str,
    /// How many threads there are for each lock.
    to_a_lock: usize,
    away_ns: u64,
}

const CASES: [Case; 4] = [
    Case { name: "a lock for each thread", to_a_lock: 1, away_ns: 200 },
    Case { name: "a lock for two, seldom wanted", to_a_lock: 2, away_ns: 20_000 },
    Case { name: "a lock for sixteen", to_a_lock: 16, away_ns: 2_000 },
    Case { name: "one lock for all", to_a_lock: usize::MAX, away_ns: 200 },
];

fn run(machine: Machine, case: &Case) -> Outcome {
    type Shared = (OwnLine<ShflMutex<Sim>>, OwnLine<[u64; 8]>);
    let threads = machine.cores() as usize;
    let locks = threads.div_ceil(case.to_a_lock);
    let shared: Rc<Vec<Shared>> =
        Rc::new((0..locks).map(|_| (OwnLine(ShflMutex::NEW), OwnLine([0; 8]))).collect());
    let away_ns = case.away_ns;
    Simulation::new(machine, 3)
        .threads(threads, move |number| {
            let (lock, data) = &shared[number % locks];
            while !finished() {
                lock.0.lock();
                touch(&data.0, Access::Write);
                work(50);
                // SAFETY: locked above.
                unsafe { lock.0.unlock() };
                count();
                think(away_ns);
            }
        })
        .run(LIMIT_NS)
        .expect("the lock doesn't deadlock")
}

fn main() {
    println!("simulated: million critical sections a second (heavy fences, Jain index)");
    for (sockets, cores) in [(8, 24), (8, 128)] {
        println!("{} CPUs", sockets * cores);
        for case in &CASES {
            print!("  {:32}", case.name);
            for light in [false, true] {
                let machine = Machine { light, ..Machine::eight_sockets().shape(sockets, cores) };
                let outcome = run(machine, case);
                let rate = outcome.total_operations() as f64 * 1e3 / LIMIT_NS as f64;
                let name = if light { "light" } else { "exchange" };
                let (fences, fair) = (outcome.counts.heavy_fences, outcome.fairness());
                print!("  {name} {rate:.2} ({fences}, {fair:.2})");
            }
            println!();
        }
    }
}
