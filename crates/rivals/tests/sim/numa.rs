//! The NUMA-aware locks to compare with, on simulated machines: that they keep a lock on its
//! socket, the gain of that, and the threads that pay for it. All figures are simulated.

use std::cell::Cell;
use std::rc::Rc;

use crate::common::contention::{self, Pace};
use antiphon_rivals::classic::{Clh, Mcs, McsStp, Ttas};
use antiphon_rivals::numa::{Ahmcs, CBoMcs, CTktMcs, Cna, Hbo, Hclh, Hmcs, Malthusian};
use antiphon_sim::{Machine, Outcome, OwnLine, Sim, Simulation, count, finished, think, work};
use antiphon_sync::lock::Lock;

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
    serves_all::<Hbo<Sim>>();
    serves_all::<Hclh<Sim>>();
    serves_all::<Hmcs<Sim>>();
    serves_all::<Ahmcs<Sim>>();
    serves_all::<Malthusian<Sim, 9_000, 100>>();
}

/// Twenty sockets here, as the type says; on a machine with more, some share a queue.
#[test]
fn there_may_be_any_number_of_sockets() {
    fn share<L: Lock>() -> f64 {
        let pace = Pace { section_ns: 50, away_ns: 200 };
        let machine = Machine::two_sockets().shape(20, 4);
        let outcome = contention::contend::<L>(machine, 80, pace, LIMIT_NS);
        assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
        share_within_socket(&outcome)
    }
    let (each, shared) = (share::<CTktMcs<Sim, 20>>(), share::<CTktMcs<Sim, 4>>());
    assert!(each > 0.9 && shared < 0.5 * each, "{each}, {shared}");
    assert!(share::<Hmcs<Sim, 20>>() > 0.9);
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
    beats_mcs_beyond_a_socket::<Cna<Sim, 0xFFF>>(1.5);
}

#[test]
fn cohorts_beat_mcs_beyond_a_socket() {
    beats_mcs_beyond_a_socket::<CBoMcs<Sim>>(1.5);
    beats_mcs_beyond_a_socket::<CTktMcs<Sim>>(1.5);
}

#[test]
fn hmcs_beats_mcs_beyond_a_socket() {
    beats_mcs_beyond_a_socket::<Hmcs<Sim>>(1.5);
}

#[test]
fn ahmcs_beats_mcs_beyond_a_socket() {
    beats_mcs_beyond_a_socket::<Ahmcs<Sim>>(1.5);
}

/// The purpose of AHMCS: as little work as the MCS lock for one thread alone, where HMCS has two
/// queues to join; and still a queue for each socket where there are many.
#[test]
fn ahmcs_skips_a_queue_where_nobody_else_comes() {
    let of = |outcome: Outcome| outcome.total_operations() as f64;
    let (mcs, hmcs, ahmcs) =
        (of(contend::<Mcs<Sim>>(1)), of(contend::<Hmcs<Sim>>(1)), of(contend::<Ahmcs<Sim>>(1)));
    println!("simulated, alone: {:.3} of MCS with HMCS, {:.3} with AHMCS", hmcs / mcs, ahmcs / mcs);
    assert!(hmcs < 0.95 * mcs && ahmcs > 0.95 * mcs, "{mcs}, {hmcs}, {ahmcs}");
    let (hmcs, ahmcs) = (of(contend::<Hmcs<Sim>>(192)), of(contend::<Ahmcs<Sim>>(192)));
    assert!(ahmcs > 0.8 * hmcs, "{ahmcs} of {hmcs}");
}

/// Neighbours come back sooner, so the lock stays more than with a queue, and fewer lines move than
/// where all back off alike. On two sockets that is worth about as much as a queue; on eight,
/// threads that are far away come too often still, and it collapses: what queue locks are for.
#[test]
fn hbo_keeps_to_a_socket_and_collapses_where_there_are_many() {
    let two = |contend: fn(Machine, usize, Pace, u64) -> Outcome| {
        contend(Machine::two_sockets(), 28, Pace { section_ns: 50, away_ns: 200 }, LIMIT_NS)
    };
    let of = |outcome: &Outcome| outcome.total_operations() as f64;
    let hbo = two(contention::contend::<Hbo<Sim>>);
    let mcs = two(contention::contend::<Mcs<Sim>>);
    let ttas = two(contention::contend::<Ttas<Sim>>);
    println!(
        "simulated, two sockets: HBO {:.2} of TTAS, {:.2} of MCS, {:.3} within a socket against \
         {:.3} of MCS; Jain {:.2}",
        of(&hbo) / of(&ttas),
        of(&hbo) / of(&mcs),
        share_within_socket(&hbo),
        share_within_socket(&mcs),
        hbo.fairness()
    );
    assert!(share_within_socket(&hbo) > share_within_socket(&mcs));
    assert!(of(&hbo) > 1.2 * of(&ttas) && hbo.fairness() < 0.95);
    let (hbo, mcs, ttas) =
        (contend::<Hbo<Sim>>(192), contend::<Mcs<Sim>>(192), contend::<Ttas<Sim>>(192));
    println!(
        "simulated, eight: {:.2} of TTAS, {:.2} of MCS",
        of(&hbo) / of(&ttas),
        of(&hbo) / of(&mcs)
    );
    assert!(of(&hbo) > 1.2 * of(&ttas) && of(&hbo) < 0.5 * of(&mcs));
}

/// A thread that comes while the master of its socket waits goes along with it, and the longer that
/// gives them, the longer the lock stays. Without, hardly more is won over a plain CLH queue: what
/// cohort locks were made for.
#[test]
fn hclh_serves_socket_by_socket() {
    let clh = contend::<Clh<Sim>>(192);
    let (hclh, gathered) = (contend::<Hclh<Sim>>(192), contend::<Hclh<Sim, 8, 10_000>>(192));
    let cohort = contend::<CTktMcs<Sim>>(192);
    let of = |outcome: &Outcome| outcome.total_operations() as f64 / clh.total_operations() as f64;
    println!(
        "simulated: {:.2} of CLH, with 10 us {:.2}; {:.3} and {:.3} within a socket against {:.3}; \
         Jain {:.2}",
        of(&hclh),
        of(&gathered),
        share_within_socket(&hclh),
        share_within_socket(&gathered),
        share_within_socket(&clh),
        hclh.fairness()
    );
    assert!(share_within_socket(&hclh) > 1.5 * share_within_socket(&clh));
    assert!(share_within_socket(&gathered) > 0.85);
    assert!(of(&hclh) > 1.0 && of(&gathered) > 1.5 && of(&cohort) > 1.5 * of(&hclh));
    assert!(hclh.fairness() > 0.9 && gathered.fairness() > 0.9);
}

/// A few threads take turns and the others sleep, however many there are: where a queue of all is
/// longer than they spin, each hand-over wakes a sleeper. The price is that the few have it all.
///
/// Two things that it does not do: where the queue is short for its waiters' spins, it is slower
/// than the queue (FlexGuard, SOSP 2025, has that too); and where there are fewer cores than take
/// turns (16 threads on 4), a woken thread finds no core, and the lock does a sixth of the queue's
/// work.
#[test]
fn the_malthusian_lock_keeps_its_work_however_many_come() {
    fn socket<L: Lock>(threads: usize, section_ns: u64) -> Outcome {
        let pace = Pace { section_ns, away_ns: 200 };
        contention::contend::<L>(Machine::two_sockets().shape(1, 24), threads, pace, 2_000_000)
    }
    let of = |outcome: &Outcome| outcome.total_operations() as f64;
    let few = socket::<Malthusian<Sim>>(4, 200);
    for threads in [24, 48] {
        let (culled, all) =
            (socket::<Malthusian<Sim>>(threads, 200), socket::<McsStp<Sim>>(threads, 200));
        println!(
            "simulated: {threads} threads on 24 cores: {:.2} of MCS-STP, {:.2} of 4 threads; Jain \
             {:.2} against {:.2}",
            of(&culled) / of(&all),
            of(&culled) / of(&few),
            culled.fairness(),
            all.fairness()
        );
        assert!(of(&culled) > 4.0 * of(&all) && of(&culled) > 0.9 * of(&few));
        assert!(culled.fairness() < 0.5 * all.fairness());
    }
    let (culled, all) = (socket::<Malthusian<Sim>>(24, 50), socket::<McsStp<Sim>>(24, 50));
    assert!(of(&culled) < of(&all), "no queue is too long here");
}

/// The most often that a waiter was overtaken or waited for, of `threads` threads of eight sockets.
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
    let (small, large) = (most_before_one::<Hmcs<Sim, 8, 8>>(48), most_before_one::<Hmcs<Sim>>(48));
    assert!(small <= most(8), "HMCS-2: {small}");
    assert!(large > most(8) && large <= most(64), "HMCS-2: {large}");
}

/// A waiter that was set aside comes back by lot: seldom with a large mask, and then waiters on
/// other sockets have nothing for long.
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
    assert_eq!((size_of::<Hmcs<Sim>>(), size_of::<Malthusian<Sim>>()), (576, 16));
    assert_eq!((size_of::<Hbo<Sim>>(), size_of::<Hclh<Sim>>()), (2, 576));
    assert_eq!(size_of::<Ahmcs<Sim>>(), 64 + 8 * 128);
}
