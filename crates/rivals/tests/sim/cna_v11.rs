//! The table of CNA's patch series, version 11, for will-it-scale's lock2 on four E7-8895 v3, held
//! against a simulation of that machine. docs/validation.md has what came of it.
//!
//! The pace was chosen once, before the first run: one thread makes 1.6 operations in a microsecond
//! (the published figure of the stock lock), 100 ns and two lines of which are taken to be under
//! the lock. Nothing was fitted to the figures of more threads. The MCS lock plays the stock one:
//! its queue is that of the kernel's qspinlock.

use antiphon_rivals::classic::Mcs;
use antiphon_rivals::numa::Cna;
use antiphon_sim::{Arbitration, Contention, Machine, Model, Pace, Sim, known};
use antiphon_sync::lock::Lock;

/// Threads; operations in a microsecond of the stock lock and of CNA, as published.
const PUBLISHED: [(usize, f64, f64); 6] = [
    (1, 1.600, 1.614),
    (4, 5.395, 5.210),
    (16, 4.168, 3.960),
    (36, 2.403, 3.922),
    (72, 1.842, 3.913),
    (142, 1.806, 3.894),
];
/// The average time away is half of the most.
const PACE: Pace = Pace { section_ns: 100, away_ns: 2 * 500 };
const LIMIT_NS: u64 = 1_000_000;
const SEEDS: u64 = 3;

fn machine() -> Machine {
    known("e7-8895v3-4s").expect("it is one").machine.clone()
}

/// Operations in a microsecond: the mean of some seeds.
fn per_us<L: Lock>(threads: usize, arbitration: Arbitration) -> f64 {
    let of = |seed| {
        let model = Model { arbitration, ..Model::default() };
        let (machine, pace, limit_ns) = (machine(), PACE, LIMIT_NS);
        let contention = Contention { machine, model, seed, threads, pace, limit_ns };
        // SAFETY: the lock that is released was acquired.
        let unlock = |lock: &L| unsafe { lock.unlock() };
        let outcome = contention.run(L::NEW, (L::lock, unlock)).expect("nobody waits for ever");
        outcome.total_operations() as f64 * 1e3 / LIMIT_NS as f64
    };
    (1..=SEEDS).map(of).sum::<f64>() / SEEDS as f64
}

/// Rows of simulated figures as [`PUBLISHED`] has them; printed for the docs.
fn simulated(arbitration: Arbitration) -> [(usize, f64, f64); 6] {
    let off = |seen: f64, published: f64| format!("{:+.0} %", (seen / published - 1.0) * 100.0);
    PUBLISHED.map(|(threads, stock, cna)| {
        let mcs = per_us::<Mcs<Sim>>(threads, arbitration);
        let ours = per_us::<Cna<Sim>>(threads, arbitration);
        println!(
            "| {threads} | {stock:.2} | {mcs:.2} ({}) | {cna:.2} | {ours:.2} ({}) | {:.2} \
             | {:.2} |",
            off(mcs, stock),
            off(ours, cna),
            cna / stock,
            ours / mcs,
        );
        (threads, mcs, ours)
    })
}

/// The part that holds. The ratio at full size does not come up to the published 2.16, and the docs
/// say so; nearest-first arbitration narrows it, for the hardware then does what CNA does.
#[test]
fn the_order_and_the_stock_locks_fall_are_as_published() {
    let rows = simulated(Arbitration::Fifo);
    for ((threads, stock, cna), (_, mcs, ours)) in PUBLISHED.into_iter().zip(rows).skip(1) {
        assert_eq!(cna > stock, ours > mcs, "{threads} threads: {ours} {mcs}");
    }
    for ((threads, stock, _), (_, mcs, _)) in PUBLISHED.into_iter().zip(rows).skip(2) {
        assert!((mcs / stock - 1.0).abs() < 0.2, "{threads} threads: {mcs}, published {stock}");
    }
    for arbitration in [Arbitration::Fifo, Arbitration::NEAREST] {
        let ratio = per_us::<Cna<Sim>>(142, arbitration) / per_us::<Mcs<Sim>>(142, arbitration);
        assert!(ratio > 1.2, "{arbitration:?}: {ratio}");
    }
}
