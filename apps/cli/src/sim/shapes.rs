//! Tests of what comes out. All figures are simulated.

use antiphon_sim::Machine;

use super::cases;
use super::experiment::{self, Arbitration, Measured, Setting};
use super::subjects::{self, SUBJECTS};

fn measured(setting: &Setting, subject: &str, case: &str, threads: usize) -> Measured {
    let lock = subjects::named(subject).expect("a subject");
    let case = cases::named(case).expect("a case");
    let measured = experiment::carry_out(setting, lock, case, threads);
    measured.unwrap_or_else(|stuck| panic!("{subject}: {stuck}"))
}

fn setting(machine: Machine, limit_ns: u64) -> Setting {
    Setting { machine, arbitration: Arbitration::Fifo, seed: 1, limit_ns }
}

/// Two sockets of two CPUs and three threads on each of these: they meet at every lock, and are
/// preempted. `cases` looks whether a lock keeps others out.
#[test]
fn every_lock_goes_on_in_every_case() {
    let machine = Machine { slice_ns: 20_000, ..Machine::two_sockets() }.shape(2, 2);
    let setting = setting(machine, 60_000);
    for subject in &SUBJECTS {
        for case in cases::of(subject.family) {
            let outcome = measured(&setting, subject.name, case.name, 12);
            assert!(outcome.completed >= 12, "{}, {}", subject.name, case.name);
            assert!(outcome.waits.count() > 0, "{}, {}", subject.name, case.name);
        }
    }
}

#[test]
fn a_seed_is_the_same_run() {
    let with = |seed: u64| {
        let setting = Setting { seed, ..setting(Machine::two_sockets(), 100_000) };
        measured(&setting, "shfl-mutex", "mail", 56).outcome
    };
    let (one, again, other) = (with(1), with(1), with(2));
    assert_eq!(one, again);
    assert_ne!(one.trace_hash, other.trace_hash);
}

/// On average four locks, and twelve at most: what the documents say of a system call.
#[test]
fn nested_locks_are_four_on_average() {
    let setting = setting(Machine::two_sockets(), 1_000_000);
    let alone = measured(&setting, "tas", "nested", 1);
    let each = alone.waits.count() as f64 / alone.completed as f64;
    assert!((3.8..4.2).contains(&each), "{each}");
}
