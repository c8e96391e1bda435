//! Barrier, semaphore and once with real threads: crowds, panics, and memory that is unmapped as
//! soon as allowed.

mod common;

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::Standard;
use antiphon_sync::policy::None;
use antiphon_sync::wait::{self, CrowdForm, MAX_PERMITS, TooManyPermits};
use common::page::Page;
use common::sound::Sound;

type Barrier<F = Standard> = wait::Barrier<Linux, F>;
type Semaphore<F = Standard> = wait::Semaphore<Linux, None, F>;
type Once<F = Standard> = wait::Once<Linux, F>;

fn in_us(us: u64) -> Deadline {
    Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + us * 1_000 }
}

/// Each thread counts in the round's word before it waits; behind the barrier the word is full.
/// Every second thread repeatedly gives up and comes again.
fn meet<F: CrowdForm>(threads: u32, rounds: usize, give_up: bool) {
    let barrier = Barrier::<F>::new(threads);
    let came: Vec<_> = (0..rounds).map(|_| AtomicU32::new(0)).collect();
    let leaders = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, came, leaders) = (&barrier, &came, &leaders);
            let until = move |us| barrier.wait_until(in_us(us));
            scope.spawn(move || {
                for round in came {
                    round.fetch_add(1, Relaxed);
                    let leads = match give_up && thread % 2 == 1 {
                        true => (1..).find_map(until) == Some(true),
                        false => barrier.wait(),
                    };
                    leaders.fetch_add(leads.into(), Relaxed);
                    assert_eq!(round.load(Relaxed), threads, "somebody went on before all came");
                }
            });
        }
    });
    assert_eq!(leaders.load(Relaxed), rounds as u64, "one leader a round");
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    meet::<Standard>(2, 3_000, false);
    meet::<Standard>(60, 60, false);
    meet::<Sound>(2, 3_000, false);
    meet::<Sound>(3, 1_000, false);
    meet::<Sound>(60, 60, false);
    let alone = Barrier::<Standard>::new(0);
    assert!(alone.wait() && alone.wait() && alone.parties() == 1);
}

#[test]
fn who_gives_up_at_a_barrier_has_not_come() {
    meet::<Standard>(2, 1_000, true);
    meet::<Sound>(2, 1_000, true);
    meet::<Sound>(3, 1_000, true);
    meet::<Sound>(20, 60, true);
}

/// BARRIER-3: the first thread to return unmaps the barrier, while all others are still in their
/// calls.
#[test]
fn a_barrier_may_go_away_once_anybody_is_back() {
    fn check<F: CrowdForm>(threads: u32, rounds: usize) {
        for _ in 0..rounds {
            let page = Page::map();
            // The page is zero, which is a barrier for one thread. SAFETY: no thread uses it yet,
            // and a barrier fits.
            unsafe { page.write(Barrier::<F>::new(threads)) };
            let back = AtomicBool::new(false);
            thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        // SAFETY: a barrier was written; it is used until the first thread has
                        // returned.
                        unsafe { page.as_ref::<Barrier<F>>() }.wait();
                        if !back.swap(true, Relaxed) {
                            // SAFETY: no thread may access it any more.
                            unsafe { page.unmap() };
                        }
                    });
                }
            });
        }
    }
    check::<Standard>(2, 300);
    check::<Sound>(2, 300);
    check::<Sound>(5, 300);
    check::<Standard>(24, 20);
}

#[test]
fn no_more_hold_a_permit_than_there_are() {
    fn check(permits: u32, threads: u32, rounds: u32) {
        let semaphore = Semaphore::<Standard>::new(permits);
        let (inside, done) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for number in 0..threads {
                let (semaphore, inside, done) = (&semaphore, &inside, &done);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let wanted = 1 + (number + round) % permits;
                        match round % 3 {
                            0 => semaphore.acquire_many(wanted),
                            1 => while !semaphore.acquire_until(wanted, in_us(50)) {},
                            _ => {
                                while !semaphore.try_acquire(wanted) {
                                    thread::yield_now();
                                }
                            }
                        }
                        assert!(inside.fetch_add(wanted, Relaxed) + wanted <= permits);
                        if round % 16 == 0 {
                            thread::yield_now();
                        }
                        inside.fetch_sub(wanted, Relaxed);
                        assert_eq!(semaphore.release(wanted), Ok(()));
                        done.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        assert_eq!((semaphore.permits(), done.load(Relaxed)), (permits, threads * rounds));
    }
    check(1, 4, 2_000);
    check(3, 6, 1_000);
    check(5, 40, 100);
}

/// SEM-3: the thread that has had the permit unmaps the semaphore while the release is still in
/// progress.
#[test]
fn release_touches_nothing_afterwards() {
    for round in 0..2_000 {
        let page = Page::map();
        // SAFETY: all zero is a semaphore without permits; it is used until it is unmapped below.
        let semaphore: &Semaphore<Sound> = unsafe { page.as_ref() };
        thread::scope(|scope| {
            scope.spawn(|| {
                semaphore.acquire();
                // SAFETY: no thread may access it any more (the point of this test).
                unsafe { page.unmap() };
            });
            if round % 3 == 0 {
                // Long enough for the waiter to sleep.
                thread::sleep(Duration::from_micros(100));
            }
            assert_eq!(semaphore.release(1), Ok(()));
        });
    }
}

/// A thread that wants many permits gets them, although others take single permits all the time.
#[test]
fn who_wants_many_permits_is_not_overtaken_for_ever() {
    const PERMITS: u32 = 4;
    /// This many turns count as for ever; they take some seconds.
    const MOST: u64 = 50_000;
    let semaphore = Semaphore::<Standard>::new(PERMITS);
    let had = AtomicBool::new(false);
    let overtaken = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..PERMITS {
            scope.spawn(|| {
                while !had.load(Relaxed) && overtaken.load(Relaxed) < MOST {
                    semaphore.acquire();
                    // Longer than the others take to come: all permits are never available at once.
                    thread::sleep(Duration::from_micros(200));
                    overtaken.fetch_add(1, Relaxed);
                    assert_eq!(semaphore.release(1), Ok(()));
                }
            });
        }
        while overtaken.load(Relaxed) < 20 {
            thread::yield_now();
        }
        semaphore.acquire_many(PERMITS);
        had.store(true, Relaxed);
        assert!(overtaken.load(Relaxed) < MOST, "not before the others had ended");
        assert_eq!(semaphore.release(PERMITS), Ok(()));
    });
    assert_eq!(semaphore.permits(), PERMITS);
}

#[test]
fn a_waiter_that_gives_up_takes_no_permit_with_it() {
    let semaphore = Semaphore::<Sound>::new(0);
    assert!(!semaphore.acquire_until(1, in_us(100)));
    thread::scope(|scope| {
        let patient = [(); 3].map(|()| scope.spawn(|| semaphore.acquire()));
        let taken = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for turn in 0..200 {
                        if semaphore.acquire_until(1, in_us(turn % 7 * 20)) {
                            taken.fetch_add(1, Relaxed);
                            assert_eq!(semaphore.release(1), Ok(()));
                        }
                    }
                });
            }
        });
        assert_eq!(taken.load(Relaxed), 0, "there was none to be had");
        for _ in &patient {
            assert_eq!(semaphore.release(1), Ok(()));
        }
    });
    assert_eq!((semaphore.permits(), semaphore.has_waiters()), (0, false));
}

#[test]
fn a_permit_too_many_is_an_error() {
    let semaphore = Semaphore::<Standard>::new(MAX_PERMITS - 1);
    assert_eq!(semaphore.release(2), Err(TooManyPermits));
    assert_eq!(semaphore.permits(), MAX_PERMITS - 1);
    assert_eq!(semaphore.release(1), Ok(()));
    assert_eq!(semaphore.release(1), Err(TooManyPermits));
    assert!(semaphore.try_acquire(MAX_PERMITS) && !semaphore.try_acquire(1));
    let asked = panic::catch_unwind(AssertUnwindSafe(|| semaphore.acquire_many(MAX_PERMITS + 1)));
    assert!(asked.is_err(), "that would be for ever");
}

/// Some runs panic, some fail; one run succeeds, and all threads see its effects.
#[test]
fn once_is_run_by_one_and_by_the_next_if_that_one_panics() {
    fn check<F: CrowdForm>(rounds: usize) {
        for _ in 0..rounds {
            let once = Once::<F>::NEW;
            let (tries, done) = (AtomicU32::new(0), AtomicU32::new(0));
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let run = || {
                            let run = match tries.fetch_add(1, Relaxed) {
                                0 => panic::resume_unwind(Box::new("the first panics")),
                                1 => Err("the second fails"),
                                _ => Ok(()),
                            };
                            thread::yield_now();
                            done.fetch_add(u32::from(run.is_ok()), Relaxed);
                            run
                        };
                        let run = || once.try_call_once(run);
                        if let Ok(Ok(())) = panic::catch_unwind(AssertUnwindSafe(run)) {
                            assert_eq!(done.load(Relaxed), 1);
                        }
                    });
                }
            });
            assert!(once.is_completed());
            assert_eq!((tries.load(Relaxed), done.load(Relaxed)), (3, 1));
        }
    }
    check::<Standard>(60);
    check::<Sound>(60);
}
