//! The NUMA-aware locks to compare with, under real threads.

mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use antiphon_linux::Linux;
use antiphon_platform::Platform;
use antiphon_sync::lock::Lock;
use antiphon_sync::lock::numa::{CBoMcs, CTktMcs, Cna};
use common::validate::{Guarded, exclusion};
use support::{FORKS, in_child};

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
fn they_have_the_sizes_that_are_stated() {
    assert_eq!(size_of::<Cna<Linux>>(), 8);
    assert_eq!((size_of::<CBoMcs<Linux>>(), size_of::<CTktMcs<Linux>>()), (576, 576));
    assert_eq!(size_of::<CTktMcs<Linux, 64>>(), 64 + 64 * 64);
}

/// A free lock keeps no node, whatever has happened at it: locks can be dropped as they are.
#[test]
fn nothing_is_leaked() {
    fn nodes<L: Lock>() -> u32 {
        let before = Linux::arena().high_water();
        for _ in 0..4 {
            let guarded = Guarded::<L>::new();
            exclusion(&guarded, 3, 500, |_| {});
        }
        Linux::arena().high_water() - before
    }
    // In a process of its own: other tests take nodes too. Each thread that has ended keeps two.
    let few = |nodes: u32| nodes <= 4 * 3 * 2 + 2;
    assert!(in_child(FORKS[0].1, || few(nodes::<Cna<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<CBoMcs<Linux>>())));
    assert!(in_child(FORKS[0].1, || few(nodes::<CTktMcs<Linux>>())));
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
}
