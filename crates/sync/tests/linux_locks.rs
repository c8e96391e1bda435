//! Tests of the locks with real threads.

mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline, Platform};
use antiphon_sync::lock::{Lock, Published, ShflMutex, ShflSpin};
use antiphon_sync::policy::{None, Numa};
use antiphon_sync::wait::Condvar;
use common::validate::{Guarded, exclusion};
use support::arena;

type Mutex = ShflMutex<Linux>;

fn validate<L: Lock>(threads: usize, rounds: u64) {
    exclusion(&Guarded::<L>::new(), threads, rounds, |_| {});
}

fn in_ms(ms: u64) -> Deadline {
    let now = Linux::now(Clock::Monotonic);
    Deadline { clock: Clock::Monotonic, ns: now + ms * 1_000_000 }
}

#[test]
fn mutex_excludes() {
    validate::<Mutex>(2, 200_000);
    validate::<Mutex>(16, 20_000);
    validate::<ShflMutex<Linux, None>>(4, 50_000);
}

#[test]
fn published_mutex_excludes() {
    validate::<ShflMutex<Linux, Numa, Published>>(4, 2_000);
}

#[test]
fn spinlock_excludes() {
    validate::<ShflSpin<Linux>>(2, 100_000);
    validate::<ShflSpin<Linux>>(8, 5_000);
}

#[test]
fn timed_lock_gives_up_and_leaves_a_sound_lock() {
    let lock = Mutex::NEW;
    lock.lock();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let begun = Instant::now();
                    assert!(!lock.lock_until(in_ms(2)));
                    assert!(begun.elapsed() >= Duration::from_millis(1));
                }
            });
        }
    });
    // SAFETY: locked above.
    unsafe { lock.unlock() };
    assert!(lock.lock_until(in_ms(0)), "a free lock is had whatever the deadline");
    // SAFETY: locked above.
    unsafe { lock.unlock() };
}

/// Waiters with and without deadlines, and barging: each thread gets the lock or gives up, and at
/// the end it is free and fast.
#[test]
fn timed_and_untimed_waiters_mix() {
    let guarded = Guarded::<Mutex>::new();
    let stop = AtomicBool::new(false);
    let (had, given_up) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..8u64 {
            let (guarded, stop, had, given_up) = (&guarded, &stop, &had, &given_up);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let locked = if number % 2 == 0 {
                        guarded.lock.lock();
                        true
                    } else {
                        let now = Linux::now(Clock::Monotonic);
                        let ns = now + 1_000 * (u64::from(Linux::random()) % 200);
                        guarded.lock.lock_until(Deadline { clock: Clock::Monotonic, ns })
                    };
                    if locked {
                        guarded.step();
                        had.fetch_add(1, Ordering::Relaxed);
                        // SAFETY: locked above.
                        unsafe { guarded.lock.unlock() };
                    } else {
                        given_up.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        thread::sleep(Duration::from_millis(700));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(guarded.total(), had.load(Ordering::Relaxed));
    assert!(guarded.lock.try_lock());
}

/// `000_…`: ten million locks must cost ten million times 8 (4) bytes. This checks that a lock owns
/// nothing until it is contended.
#[test]
fn a_lock_takes_no_node_until_it_contends() {
    assert_eq!(size_of::<Mutex>(), 8);
    assert_eq!(size_of::<ShflSpin<Linux>>(), 4);
    let before = arena().high_water();
    for _ in 0..10_000 {
        let lock = Mutex::NEW;
        lock.lock();
        // SAFETY: locked above.
        unsafe { lock.unlock() };
    }
    let after = arena().high_water();
    // Other tests run beside this one; they take a few dozen.
    assert!(after - before < 1_000, "{before} to {after}");
}

#[test]
fn condvar_hands_over_each_item() {
    const ITEMS: u64 = 20_000;
    let lock = Mutex::NEW;
    let (filled, emptied) = (Condvar::<Linux>::NEW, Condvar::<Linux>::NEW);
    let full = AtomicBool::new(false);
    let wait = |condvar: &Condvar<Linux>, until: bool| {
        while full.load(Ordering::Relaxed) != until {
            condvar.wait(
                Option::None,
                // SAFETY: locked by the caller of `wait`.
                || unsafe { lock.unlock() },
                || lock.lock(),
            );
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ITEMS {
                lock.lock();
                wait(&emptied, false);
                full.store(true, Ordering::Relaxed);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
                filled.notify_one();
            }
        });
        scope.spawn(|| {
            for _ in 0..ITEMS {
                lock.lock();
                wait(&filled, true);
                full.store(false, Ordering::Relaxed);
                // SAFETY: locked above.
                unsafe { lock.unlock() };
                emptied.notify_one();
            }
        });
    });
}

#[test]
fn broadcast_wakes_everybody() {
    for _ in 0..50 {
        let lock = Mutex::NEW;
        let condvar = Condvar::<Linux>::NEW;
        let go = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    lock.lock();
                    while !go.load(Ordering::Relaxed) {
                        condvar.wait(
                            Option::None,
                            // SAFETY: locked above.
                            || unsafe { lock.unlock() },
                            || lock.lock(),
                        );
                    }
                    // SAFETY: locked above, or by the wait.
                    unsafe { lock.unlock() };
                });
            }
            lock.lock();
            go.store(true, Ordering::Relaxed);
            // SAFETY: locked above.
            unsafe { lock.unlock() };
            condvar.notify_all();
        });
    }
}
