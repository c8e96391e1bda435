//! The NUMA-aware locks to compare with, on simulated machines: that they keep a lock on its
//! socket, what that is worth, and who pays for it. All figures are simulated.

mod common;

use std::cell::Cell;
use std::rc::Rc;

use antiphon_sim::{Machine, Outcome, OwnLine, Sim, Simulation, count, finished, think, work};
use antiphon_sync::lock::Lock;
use antiphon_sync::lock::classic::Mcs;
use antiphon_sync::lock::numa::{CBoMcs, CTktMcs, Cna};
use common::contention::{self, Pace};

const LIMIT_NS: u64 = 1_000_000;

/// Short critical sections on a busy lock of the machine of eight sockets, 24 cores each.
fn contend<L: Lock>(threads: usize) -> Outcome {
    let pace = Pace { section_ns: 50, away_ns: 200 };
    contention::contend::<L>(Machine::eight_sockets(), threads, pace, LIMIT_NS)
}

fn share_within_socket(outcome: &Outcome) -> f64 {
    outcome.counts.handovers_within_socket as f64 / outcome.counts.handovers as f64
}

fn remote_transfers_per_operation(outcome: &Outcome) -> f64 {
    outcome.counts.remote_transfers as f64 / outcome.total_operations() as f64
}

/// Each thread gets the lock at least once, on one socket and on two, with few and many threads.
fn serves_all<L: Lock>() {
    for threads in [1, 2, 8] {
        let machine = Machine::two_sockets().shape(2, 4);
        let pace = Pace { section_ns: 50, away_ns: 200 };
        let outcome = contention::contend::<L>(machine, threads, pace, 2_000_000);
        assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
    }
}

#[test]
fn every_lock_excludes_and_serves_all() {
    serves_all::<Cna<Sim, 0xFF>>();
    serves_all::<CTktMcs<Sim>>();
}

/// Sockets that back off lose against the one whose next leader is near the global lock; where they
/// take turns, all get the same.
#[test]
fn a_cohort_is_as_fair_as_its_global_lock() {
    let fairness = |outcome: Outcome| outcome.fairness();
    assert!(fairness(contend::<CTktMcs<Sim>>(192)) > 0.95);
    assert!(fairness(contend::<CBoMcs<Sim>>(192)) < 0.5);
}

/// The documented shape: beyond one socket they do a multiple of the MCS lock's work and move far
/// fewer lines between sockets; within one they do no more than it.
fn beats_mcs_beyond_a_socket<L: Lock>(times: f64) {
    let (one, all) = (contend::<L>(24), contend::<L>(192));
    let (mcs_one, mcs_all) = (contend::<Mcs<Sim>>(24), contend::<Mcs<Sim>>(192));
    let ratio = |one: &Outcome, other: &Outcome| {
        one.total_operations() as f64 / other.total_operations() as f64
    };
    let (within, beyond) = (ratio(&one, &mcs_one), ratio(&all, &mcs_all));
    let (mine, mcs) =
        (remote_transfers_per_operation(&all), remote_transfers_per_operation(&mcs_all));
    println!(
        "simulated: {within:.2} of MCS on a socket, {beyond:.2} on eight; {:.3} of hand-overs \
         within a socket, {mine:.2} remote transfers an operation against {mcs:.2}; Jain {:.2}",
        share_within_socket(&all),
        all.fairness()
    );
    assert!(within < 1.1, "{within} of the MCS lock on one socket");
    assert!(beyond > times, "{beyond} of the MCS lock on eight");
    assert!(share_within_socket(&all) > 0.9, "{}", share_within_socket(&all));
    assert!(mine < 0.3 * mcs, "{mine} remote transfers against {mcs}");
}

#[test]
fn cna_beats_mcs_beyond_a_socket() {
    beats_mcs_beyond_a_socket::<Cna<Sim, 0xFF>>(1.5);
}

#[test]
fn cohorts_beat_mcs_beyond_a_socket() {
    beats_mcs_beyond_a_socket::<CBoMcs<Sim>>(1.5);
    beats_mcs_beyond_a_socket::<CTktMcs<Sim>>(1.5);
}

/// How often at most a waiter was overtaken or waited for, of `threads` threads of eight sockets.
fn most_before_one<L: Lock>(threads: usize) -> u64 {
    let shared = Rc::new((OwnLine(L::NEW), Cell::new(0_u64), Cell::new(0_u64)));
    let result = Rc::clone(&shared);
    let machine = Machine::eight_sockets().shape(8, 6);
    let outcome = Simulation::new(machine, 7)
        .threads(threads, move |_| {
            let (lock, entries, most) = (&shared.0.0, &shared.1, &shared.2);
            while !finished() {
                let before = entries.get();
                lock.lock();
                most.set(most.get().max(entries.get() - before));
                entries.set(entries.get() + 1);
                work(50);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
                count();
                think(200);
            }
        })
        .run(LIMIT_NS)
        .unwrap_or_else(|stuck| panic!("{stuck}"));
    assert!(outcome.total_operations() > 1_000);
    result.2.get()
}

/// COHORT-2: where sockets take turns, a waiter waits for two rounds of full budgets at most; one
/// more may come to each while it joins.
#[test]
fn a_cohort_s_budget_bounds_who_comes_first() {
    let most = |budget: u64| 2 * 8 * (budget + 2);
    let (small, large) =
        (most_before_one::<CTktMcs<Sim, 8, 8>>(48), most_before_one::<CTktMcs<Sim>>(48));
    println!("simulated: {small} before one with a budget of 8, {large} with 64");
    assert!(small <= most(8), "{small}");
    assert!(large > most(8) && large <= most(64), "{large}");
}

/// Who was set aside comes back by lot: seldom with a large mask, and then those who wait on other
/// sockets have nothing for long.
#[test]
fn cna_s_mask_is_the_price_of_its_fairness() {
    let (often, seldom) = (contend::<Cna<Sim, 0xF>>(192), contend::<Cna<Sim, 0xFFFF>>(192));
    println!("simulated: Jain {:.2}, {:.2}", often.fairness(), seldom.fairness());
    assert!(often.fairness() > 2.0 * seldom.fairness());
    assert!(seldom.total_operations() > often.total_operations());
}

#[test]
fn what_a_lock_takes_on_eight_sockets() {
    assert_eq!(size_of::<Cna<Sim>>(), 8);
    // `004_…`: 1600 bytes an instance of the cohort lock that it was compared with.
    assert_eq!((size_of::<CBoMcs<Sim>>(), size_of::<CTktMcs<Sim>>()), (576, 576));
}
