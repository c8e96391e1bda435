//! Prints simulated throughput curves of the locks on the 8-socket, 192-core machine.
//!
//! `cargo run --release -p antiphon-rivals --example curves`

use std::rc::Rc;

use antiphon_rivals::classic::{Clh, Futex, Mcs, McsStp, Tas, Ticket, Ttas};
use antiphon_sim::{Access, Machine, Outcome, OwnLine, Sim, Simulation, count, finished, think};
use antiphon_sync::lock::{Lock, Published, ShflMutex, ShflSpin};
use antiphon_sync::policy::{None, Numa};

fn curve<L: Lock>(threads: usize) -> Outcome {
    let shared = Rc::new(OwnLine((L::NEW, OwnLine([0u64; 16]))));
    Simulation::new(Machine::eight_sockets(), 1)
        .threads(threads, move |_| {
            while !finished() {
                shared.0.0.lock();
                antiphon_sim::touch(&shared.0.1.0, Access::Write);
                antiphon_sim::work(50);
                // SAFETY: locked above.
                unsafe { shared.0.0.unlock() };
                count();
                think(200);
            }
        })
        .run(2_000_000)
        .expect("the locks don't deadlock")
}

fn main() {
    type Row = (&'static str, fn(usize) -> Outcome);
    let rows: [Row; 12] = [
        ("tas", curve::<Tas<Sim>>),
        ("ttas", curve::<Ttas<Sim>>),
        ("ticket", curve::<Ticket<Sim>>),
        ("mcs", curve::<Mcs<Sim>>),
        ("mcs-stp", curve::<McsStp<Sim>>),
        ("clh", curve::<Clh<Sim>>),
        ("futex", curve::<Futex<Sim>>),
        ("shfl-spin", curve::<ShflSpin<Sim, Numa>>),
        ("shfl-spin+none", curve::<ShflSpin<Sim, None>>),
        ("shfl-mutex", curve::<ShflMutex<Sim, Numa>>),
        ("shfl-mutex+none", curve::<ShflMutex<Sim, None>>),
        ("shfl-mutex+published", curve::<ShflMutex<Sim, Numa, Published>>),
    ];
    println!("simulated: million critical sections a second (remote transfers each, Jain index)");
    for (name, run) in rows {
        print!("{name:22}");
        for threads in [1, 2, 24, 48, 96, 192, 384] {
            let outcome = run(threads);
            let operations = outcome.total_operations();
            print!(
                " {threads}: {:.2} ({:.1}, {:.2})",
                operations as f64 / 2_000.0,
                outcome.counts.remote_transfers as f64 / operations as f64,
                outcome.fairness()
            );
        }
        println!();
    }
}
