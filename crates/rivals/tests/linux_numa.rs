//! The NUMA-aware locks to compare with, under real threads.

#[path = "../../sync/tests/common/mod.rs"]
mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::thread;

use antiphon_linux::Linux;
use antiphon_rivals::numa::{Ahmcs, CBoMcs, CTktMcs, Cna, CohortRw, Hclh, Hmcs, Malthusian};
use antiphon_sync::lock::Lock;
use common::validate::{Guarded, exclusion};
use support::{FORKS, arena, in_child};

/// As many threads as any machine has CPUs, and one more: those that spin get on by yielding.
fn excludes<L: Lock>() {
    let guarded = Guarded::<L>::new();
    exclusion(&guarded, 2, 20_000, |_| {});
    exclusion(&guarded, 3, 2_000, |_| {});
}

#[test]
fn cna_excludes() {
    excludes::<Cna<Linux, 1>>();
}

#[test]
fn cohorts_exclude() {
    // A budget that is always spent, and one queue for all.
    excludes::<CTktMcs<Linux, 1, 0>>();
}

#[test]
fn hmcs_excludes() {
    excludes::<Hmcs<Linux, 1, 0>>();
}

#[test]
fn ahmcs_excludes() {
    // The socket's queue is always left out, or never.
    excludes::<Ahmcs<Linux, 8, 64, 0>>();
    excludes::<Ahmcs<Linux, 8, 64, { u32::MAX }>>();
}

#[test]
fn malthusian_excludes_a_crowd() {
    exclusion(&Guarded::<Malthusian<Linux>>::new(), 16, 500, |_| {});
    // All waiters sleep, none spins: a wake that does not come shows.
    exclusion(&Guarded::<Malthusian<Linux, 0, 2>>::new(), 4, 2_000, |_| {});
}

#[test]
fn a_readers_writer_cohort_shares_and_excludes() {
    excludes::<CohortRw<Linux>>();
    let guarded = Guarded::<CohortRw<Linux>>::new();
    let lock = &guarded.lock;
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..10_000 {
                    if round % 10 == 0 {
                        lock.write();
                        guarded.step();
                        // SAFETY: acquired above.
                        unsafe { lock.unlock_write() };
                        continue;
                    }
                    let seat = if round % 7 == 0 { lock.try_read() } else { None };
                    let seat = seat.unwrap_or_else(|| lock.read());
                    guarded.look();
                    // SAFETY: acquired above.
                    unsafe { lock.unlock_read(seat) };
                }
            });
        }
    });
    assert_eq!(guarded.total(), 3 * 1_000);
    // Two readers are in at a time, and a writer is not.
    let seats = (lock.try_read().expect("free"), lock.try_read().expect("shared"));
    assert!(!lock.try_write());
    // SAFETY: acquired above, both.
    unsafe {
        lock.unlock_read(seats.0);
        lock.unlock_read(seats.1);
    }
    assert!(lock.try_write() && lock.try_read().is_none());
    // SAFETY: acquired above.
    unsafe { lock.unlock_write() };
}

#[test]
fn more_sockets_take_more() {
    assert_eq!(size_of::<CTktMcs<Linux, 64>>(), 64 + 64 * 64);
    assert_eq!(size_of::<CohortRw<Linux>>(), 128 + 8 * 128);
}

/// A free lock keeps no node, whatever has happened at it: locks can be dropped as they are.
#[test]
fn nothing_is_leaked() {
    fn nodes<L: Lock>() -> u32 {
        let before = arena().high_water();
        for _ in 0..4 {
            let guarded = Guarded::<L>::new();
            exclusion(&guarded, 3, 500, |_| {});
        }
        arena().high_water() - before
    }
    // In a process of its own: other tests take nodes too. Each thread that has ended keeps two.
    let few = |nodes: u32| nodes <= 4 * 3 * 2 + 2;
    assert!(in_child(FORKS[0].1, || few(nodes::<Cna<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<CBoMcs<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<CTktMcs<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<Hmcs<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<Malthusian<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<Hclh<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<Ahmcs<Linux>>())));
}
