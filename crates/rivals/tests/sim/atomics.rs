//! The number of atomic instructions of an operation, and the threads that execute them: those of
//! the owner stand between the others and the lock. Also the work of a shuffler, and whether that
//! delays other threads.
//!
//! `000_…`, "Analysis of SHFLLOCK": few atomics on the critical path, shuffling off it.

use crate::common::contention::{Pace, contend};
use antiphon_platform::Platform;
use antiphon_rivals::classic::{Clh, Futex, Mcs, Tas, Ticket};
use antiphon_sim::{Counts, Machine, Outcome, Sim};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};
use antiphon_sync::policy::{None, Numa, Policy, Waiting};

/// Sorts by socket, and notes each waiter that it looks at.
#[derive(Clone, Copy, Default, PartialEq)]
struct Noted;

impl Policy for Noted {
    fn shuffles<P: Platform>(self) -> bool {
        Numa.shuffles::<P>()
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        Numa.on_wait(me);
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        antiphon_sim::note();
        Numa.groups(shuffler, candidate)
    }
}

fn run<L: Lock>(threads: usize) -> Outcome {
    run_on::<L>(Machine { light: false, ..Machine::eight_sockets() }, threads)
}

fn run_on<L: Lock>(machine: Machine, threads: usize) -> Outcome {
    run_for::<L>(machine.without_jitter(), threads)
}

fn run_for<L: Lock>(machine: Machine, threads: usize) -> Outcome {
    contend::<L>(machine, threads, Pace { section_ns: 50, away_ns: 200 }, 1_000_000)
}

/// Atomic instructions for an operation, of the owner and of all others.
fn atomics<L: Lock>(threads: usize) -> (f64, f64) {
    per_operation(&run::<L>(threads))
}

fn per_operation(outcome: &Outcome) -> (f64, f64) {
    // Threads finish what they have begun when the time is up.
    let operations = outcome.total_operations() as f64;
    let Counts { owner_atomics, other_atomics, .. } = outcome.counts;
    (owner_atomics as f64 / operations, other_atomics as f64 / operations)
}

#[test]
fn alone_a_lock_takes_what_its_code_says() {
    let near = |(owner, other): (f64, f64), expected: (f64, f64)| {
        let close = |seen: f64, wanted: f64| (seen - wanted).abs() <= 0.01;
        assert!(close(owner, expected.0) && close(other, expected.1), "{owner} {other}");
    };
    near(atomics::<Tas<Sim>>(1), (0.0, 1.0));
    near(atomics::<Ticket<Sim>>(1), (0.0, 1.0));
    near(atomics::<ShflSpin<Sim>>(1), (0.0, 1.0));
    near(atomics::<Futex<Sim>>(1), (1.0, 1.0));
    near(atomics::<ShflMutex<Sim>>(1), (1.0, 1.0));
    // The light unlock is a store.
    let light = Machine { light: true, ..Machine::eight_sockets() };
    near(per_operation(&run_on::<ShflMutex<Sim>>(light, 1)), (0.0, 1.0));
    // The queue's end is taken back by exchange; the others' nodes come from a free list.
    let (owner, _) = atomics::<Mcs<Sim>>(1);
    assert!(owner >= 1.0, "{owner}");
    let (_, other) = atomics::<Clh<Sim>>(1);
    assert!(other >= 1.0, "{other}");
}

#[test]
fn under_contention_the_owners_of_ours_do_little_more() {
    let (tas, spin, mutex) =
        (atomics::<Tas<Sim>>(48), atomics::<ShflSpin<Sim>>(48), atomics::<ShflMutex<Sim>>(48));
    assert_eq!(tas.0, 0.0, "it is a store that releases");
    assert!(tas.1 > 10.0, "all that wait try again and again: {}", tas.1);
    assert!(spin.0 < 3.0 && spin.1 < 10.0, "{spin:?}");
    assert!(mutex.0 < 4.0 && mutex.1 < 10.0, "{mutex:?}");
}

#[test]
fn spinning_waiters_shuffle_while_somebody_has_the_lock() {
    let Counts { notes, notes_while_owned, .. } = run::<ShflSpin<Sim, Noted>>(48).counts;
    // The rest are looks while the lock changes hands, which takes as long as a section.
    assert!(10 * notes_while_owned > 6 * notes, "{notes_while_owned} of {notes}");
    assert_eq!(run::<ShflSpin<Sim, None>>(48).counts.notes, 0);
}

#[test]
fn a_shuffler_looks_at_few_for_an_operation() {
    for outcome in [run::<ShflSpin<Sim, Noted>>(48), run::<ShflMutex<Sim, Noted>>(48)] {
        let (notes, operations) = (outcome.counts.notes, outcome.total_operations());
        assert!(notes > 0 && notes < 2 * operations, "{notes} looks in {operations} operations");
    }
}

/// The sorted queue hands the lock over within a socket. Served in order of coming it would be one
/// of four, if threads of a socket did not come back sooner while the lock is near.
#[test]
fn sorting_keeps_the_lock_on_a_socket() {
    let within = |outcome: Outcome| {
        let Counts { handovers, handovers_within_socket, .. } = outcome.counts;
        handovers_within_socket as f64 / handovers as f64
    };
    let spread = |sorted: f64, unsorted: f64| sorted > 1.2 * unsorted;
    let machine = Machine::eight_sockets();
    let sorted = within(run_for::<ShflSpin<Sim, Numa>>(machine.clone(), 96));
    let unsorted = within(run_for::<ShflSpin<Sim, None>>(machine, 96));
    assert!(spread(sorted, unsorted), "{sorted} against {unsorted}");
}

#[test]
fn the_counts_are_the_same_in_each_run() {
    assert_eq!(run::<ShflMutex<Sim, Noted>>(24).counts, run::<ShflMutex<Sim, Noted>>(24).counts);
}
