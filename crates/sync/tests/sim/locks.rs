//! Tests of the locks on simulated machines: order, fairness, the cost of a policy; deterministic.

use crate::common::contention::{self, Pace};
use antiphon_sim::{Machine, Outcome, Sim};
use antiphon_sync::lock::{Lock, Published, ShflMutex, ShflSpin};
use antiphon_sync::policy::{None, Numa};

/// Short critical sections on a busy lock.
fn contend<L: Lock>(machine: Machine, threads: usize, limit_ns: u64) -> Outcome {
    contention::contend::<L>(machine, threads, Pace { section_ns: 50, away_ns: 200 }, limit_ns)
}

fn remote_transfers_per_operation(outcome: &Outcome) -> f64 {
    outcome.counts.remote_transfers as f64 / outcome.total_operations() as f64
}

/// Each thread gets the lock at least once.
fn serves_all<L: Lock>(threads: usize, limit_ns: u64) {
    let outcome = contend::<L>(Machine::two_sockets().shape(2, 4), threads, limit_ns);
    assert!(outcome.operations.iter().all(|&count| count > 0), "{:?}", outcome.operations);
}

#[test]
fn every_lock_excludes_and_serves_all() {
    for threads in [1, 2, 8] {
        serves_all::<ShflSpin<Sim>>(threads, 5_000_000);
        serves_all::<ShflMutex<Sim>>(threads, 5_000_000);
        serves_all::<ShflMutex<Sim, Numa, Published>>(threads, 5_000_000);
    }
    // More threads than cores: only locks that sleep or barge make progress.
    serves_all::<ShflMutex<Sim>>(24, 100_000_000);
    serves_all::<ShflMutex<Sim, None>>(24, 100_000_000);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || contend::<ShflMutex<Sim>>(Machine::eight_sockets(), 48, 300_000);
    assert_eq!(run(), run());
}

/// `000_…`, "NUMA-aware shuffling": sorting by socket keeps the lock on a socket for a while.
#[test]
fn shuffling_saves_remote_transfers() {
    let sorted = contend::<ShflSpin<Sim, Numa>>(Machine::eight_sockets(), 48, 1_000_000);
    let unsorted = contend::<ShflSpin<Sim, None>>(Machine::eight_sockets(), 48, 1_000_000);
    let (sorted_cost, unsorted_cost) =
        (remote_transfers_per_operation(&sorted), remote_transfers_per_operation(&unsorted));
    // Two of its accesses are the section's own lines, which go where the lock goes; a thread that
    // comes back while the lock is near saves transfers of an unsorted queue too.
    assert!(sorted_cost < 0.75 * unsorted_cost, "{sorted_cost} against {unsorted_cost}");
    assert!(sorted.total_operations() > unsorted.total_operations());
    // Long-term fairness (INV-5): sorting must not cause starvation.
    assert!(sorted.fairness() > 0.7, "{}", sorted.fairness());
}
