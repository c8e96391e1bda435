//! The locks to compare with, on simulated machines: that they work, and that they collapse where
//! they are known to.

use crate::common::contention::{self, Pace};
use antiphon_rivals::classic::{self, Clh, Futex, Mcs, McsStp, Tas, Ticket};
use antiphon_sim::{Machine, Outcome, Sim};
use antiphon_sync::lock::{Lock, ShflMutex};

/// Short critical sections on a busy lock.
fn contend<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> Outcome {
    contention::contend::<L>(machine, threads, Pace { section_ns: 50, away_ns: 200 }, limit_ns)
}

fn operations<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> f64 {
    contend::<L>(machine, threads, limit_ns).total_operations() as f64
}

fn eight_cores() -> Machine {
    Machine::two_sockets().shape(2, 4)
}

/// Each thread gets the lock at least once.
fn serves_all<L: Lock>(threads: usize, limit_ns: u64) {
    let outcome = contend::<L>(eight_cores(), threads, limit_ns);
    assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
}

macro_rules! each_serves_all {
    (
        [$threads:ident]
        classic: $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        $(serves_all::<classic::$lock<Sim>>($threads, 2_000_000);)+
    };
}

#[test]
fn every_lock_excludes_and_serves_all() {
    for threads in [1, 2, 8] {
        antiphon_rivals::locks!(classic => each_serves_all [threads]);
    }
    // More threads than cores: all get on if all sleep.
    serves_all::<McsStp<Sim>>(24, 20_000_000);
}

/// A lock that serves first come, first served, gives all the same; a lock that is free for all
/// does not.
#[test]
fn queues_are_fair_and_barging_is_not() {
    let fairness = |outcome: &Outcome| outcome.fairness();
    // The range between the threads with the most and the least operations, as a share of the
    // average.
    let spread = |outcome: &Outcome| {
        let operations = &outcome.operations;
        let range = operations.iter().max().zip(operations.iter().min());
        let (most, least) = range.expect("there are threads");
        (most - least) as f64 * operations.len() as f64 / outcome.total_operations() as f64
    };
    let mcs = contend::<Mcs<Sim>>(eight_cores(), 8, 2_000_000);
    let clh = contend::<Clh<Sim>>(eight_cores(), 8, 2_000_000);
    assert!(fairness(&mcs) > 0.99 && fairness(&clh) > 0.99);
    let futex = contend::<Futex<Sim>>(eight_cores(), 8, 2_000_000);
    assert!(futex.counts.wakes > 0, "{futex:?}");
    assert!(spread(&futex) > 4.0 * spread(&mcs).max(spread(&clh)), "{futex:?}, {mcs:?}");
}

/// J. Mellor-Crummey, M. Scott, section 4: where all waiters look at one word, a hand-off costs the
/// more the more they are; where each has its own, it does not.
#[test]
fn a_hand_off_costs_more_where_all_look_at_one_word() {
    fn loses<L: Lock>() -> f64 {
        let of = |threads| operations::<L>(Machine::eight_sockets(), threads, 300_000);
        of(4) / of(24)
    }
    let (tas, ticket) = (loses::<Tas<Sim>>(), loses::<Ticket<Sim>>());
    let (mcs, clh) = (loses::<Mcs<Sim>>(), loses::<Clh<Sim>>());
    assert!(mcs < 1.1 && clh < 1.1, "{mcs}, {clh}");
    assert!(ticket > 1.2 && tas > ticket, "{ticket}, {tas}");
}

/// A queue of spinners waits for one that does not run.
#[test]
fn queues_of_spinners_collapse_where_threads_outnumber_cores() {
    fn keeps<L: Lock>() -> f64 {
        let of = |threads| operations::<L>(Machine::two_sockets().shape(1, 4), threads, 10_000_000);
        of(8) / of(4)
    }
    let (mcs, clh, futex) = (keeps::<Mcs<Sim>>(), keeps::<Clh<Sim>>(), keeps::<Futex<Sim>>());
    assert!(mcs < 0.5 && clh < 0.5, "{mcs}, {clh}");
    assert!(futex > 0.8, "{futex}");
}

/// `000_…`, "NUMA also affects oversubscription": twice as many threads as cores.
#[test]
fn the_mutex_survives_oversubscription() {
    let full = contend::<ShflMutex<Sim>>(Machine::two_sockets().shape(2, 4), 8, 20_000_000);
    let twice = contend::<ShflMutex<Sim>>(Machine::two_sockets().shape(2, 4), 16, 20_000_000);
    let ticket = contend::<Ticket<Sim>>(Machine::two_sockets().shape(2, 4), 16, 20_000_000);
    assert!(twice.total_operations() * 2 > full.total_operations());
    // Whose turn it is has lost its core to another half of the time, until that one yields.
    assert!(twice.total_operations() > 2 * ticket.total_operations());
}
