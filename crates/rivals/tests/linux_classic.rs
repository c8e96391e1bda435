//! The locks to compare with, under real threads.

#[path = "../../sync/tests/common/mod.rs"]
mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use antiphon_linux::Linux;
use antiphon_rivals::classic::{Clh, Futex, Mcs, McsStp};
use antiphon_sync::lock::Lock;
use common::validate::{Guarded, exclusion};
use support::{FORKS, arena, in_child};

/// As many threads as any machine has CPUs, and one more: those that spin get on by yielding.
fn excludes<L: Lock>() {
    let guarded = Guarded::<L>::new();
    exclusion(&guarded, 2, 20_000, |_| {});
    exclusion(&guarded, 3, 2_000, |_| {});
}

/// Calls a function for each lock of a family of the registry.
macro_rules! for_each {
    (
        [$function:ident]
        $family:ident: $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        $($function::<antiphon_rivals::$family::$lock<Linux>>($name, $bytes);)+
    };
}

#[test]
fn every_lock_excludes() {
    fn excludes<L: Lock>(_name: &str, _bytes: usize) {
        self::excludes::<L>();
    }
    antiphon_rivals::locks!(classic => for_each [excludes]);
    antiphon_rivals::locks!(numa => for_each [excludes]);
    antiphon_rivals::locks!(cst => for_each [excludes]);
    antiphon_rivals::locks!(stock => for_each [excludes]);
}

#[test]
fn locks_whose_waiters_sleep_exclude_a_crowd() {
    exclusion(&Guarded::<Futex<Linux>>::new(), 16, 10_000, |_| {});
    exclusion(&Guarded::<McsStp<Linux>>::new(), 16, 500, |_| {});
    // All waiters sleep, none spins: a wake that does not come shows.
    exclusion(&Guarded::<McsStp<Linux, 0>>::new(), 4, 2_000, |_| {});
}

#[test]
fn they_have_the_sizes_that_are_stated() {
    fn has_size<L>(name: &str, bytes: usize) {
        assert_eq!(size_of::<L>(), bytes, "{name}");
    }
    antiphon_rivals::locks!(classic => for_each [has_size]);
    antiphon_rivals::locks!(numa => for_each [has_size]);
    antiphon_rivals::locks!(cst => for_each [has_size]);
    antiphon_rivals::locks!(stock => for_each [has_size]);
}

/// A free lock keeps no node, and one that is held keeps one.
#[test]
fn a_thread_that_holds_one_at_a_time_needs_one_node() {
    fn nodes<L: Lock>() -> u32 {
        let before = arena().high_water();
        for _ in 0..1_000 {
            let lock = L::NEW;
            lock.lock();
            // SAFETY: locked above.
            unsafe { lock.unlock() };
        }
        arena().high_water() - before
    }
    // In a process of its own: other tests take nodes too.
    let in_all = || nodes::<Mcs<Linux>>() + nodes::<McsStp<Linux>>() + nodes::<Clh<Linux>>() == 1;
    assert!(in_child(FORKS[0].1, in_all));
}

/// Though its node is wiped there.
#[test]
fn a_lock_that_is_held_at_a_fork_can_be_unlocked_in_the_child() {
    fn goes_on<L: Lock>(name: &str, _bytes: usize) {
        let lock = L::NEW;
        lock.lock();
        let goes_on = in_child(FORKS[0].1, || {
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
        });
        assert!(goes_on, "{name}");
    }
    antiphon_rivals::locks!(classic => for_each [goes_on]);
    antiphon_rivals::locks!(numa => for_each [goes_on]);
}
