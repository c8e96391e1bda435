//! The NUMA-aware locks to compare with, under real threads.

mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::thread;

use antiphon_linux::Linux;
use antiphon_sync::lock::Lock;
use antiphon_sync::lock::numa::{
    Ahmcs, CBoMcs, CTktMcs, Cna, CohortRw, Hbo, Hclh, Hmcs, Malthusian,
};
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
    excludes::<Cna<Linux>>();
    excludes::<Cna<Linux, 1>>();
}

#[test]
fn cohorts_exclude() {
    excludes::<CBoMcs<Linux>>();
    excludes::<CTktMcs<Linux>>();
    // A budget that is always spent, and one queue for all.
    excludes::<CTktMcs<Linux, 1, 0>>();
}

#[test]
fn hmcs_excludes() {
    excludes::<Hmcs<Linux>>();
    excludes::<Hmcs<Linux, 1, 0>>();
}

#[test]
fn hbo_hclh_and_ahmcs_exclude() {
    excludes::<Hbo<Linux>>();
    excludes::<Hclh<Linux>>();
    excludes::<Ahmcs<Linux>>();
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
fn they_have_the_sizes_that_are_stated() {
    assert_eq!(size_of::<Cna<Linux>>(), 8);
    assert_eq!((size_of::<CBoMcs<Linux>>(), size_of::<CTktMcs<Linux>>()), (576, 576));
    assert_eq!(size_of::<CTktMcs<Linux, 64>>(), 64 + 64 * 64);
    assert_eq!((size_of::<Hmcs<Linux>>(), size_of::<Malthusian<Linux>>()), (576, 16));
    assert_eq!((size_of::<Hbo<Linux>>(), size_of::<Hclh<Linux>>()), (2, 576));
    assert_eq!(size_of::<Ahmcs<Linux>>(), 64 + 8 * 128);
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

/// Though its node is wiped there.
#[test]
fn a_lock_that_is_held_at_a_fork_can_be_unlocked_in_the_child() {
    fn goes_on<L: Lock>() -> bool {
        let lock = L::NEW;
        lock.lock();
        in_child(FORKS[0].1, || {
            // SAFETY: locked above, by the thread that has forked.
            unsafe { lock.unlock() };
            (0..3).all(|_| {
                let free = lock.try_lock();
                if free {
                    // SAFETY: locked just now.
                    unsafe { lock.unlock() };
                }
                free
            })
        })
    }
    assert!(goes_on::<Cna<Linux>>());
    assert!(goes_on::<CBoMcs<Linux>>());
    assert!(goes_on::<CTktMcs<Linux>>());
    assert!(goes_on::<Hmcs<Linux>>());
    assert!(goes_on::<Malthusian<Linux>>());
    assert!(goes_on::<Hbo<Linux>>());
    assert!(goes_on::<Hclh<Linux>>());
    assert!(goes_on::<Ahmcs<Linux>>());
}
