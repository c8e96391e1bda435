//! Locks whose sections other threads run, under real threads.

#[path = "../../sync/tests/common/mod.rs"]
mod common;

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_rivals::delegation::{DsmSynch, Rcl};
use support::{FORKS, arena, in_child};

type Combining<T> = DsmSynch<T, Linux>;
/// All waiters sleep, none spins: a wake that does not come shows.
type Sleepy<T, const BOUND: u32> = DsmSynch<T, Linux, BOUND, 0>;

/// The guarded value: both numbers are equal except inside of a section.
type Pair = (u64, u64);

fn step(pair: &mut Pair) -> u64 {
    assert_eq!(pair.0, pair.1, "two sections at a time");
    pair.0 += 1;
    std::hint::black_box(&mut *pair);
    pair.1 += 1;
    pair.1
}

/// `threads` threads with `rounds` sections each, through `with`. Every section is run once, and
/// its result reaches the thread that has come with it: no number is returned twice.
fn contend(threads: u64, rounds: u64, with: impl Fn(u64) -> u64 + Sync) {
    let barrier = Barrier::new(threads as usize);
    let sum = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                barrier.wait();
                let mut last = 0;
                for round in 0..rounds {
                    let number = with(round);
                    assert!(number > last, "{number} behind {last}");
                    last = number;
                    sum.fetch_add(number, Relaxed);
                }
            });
        }
    });
    let all = threads * rounds;
    assert_eq!(sum.into_inner(), all * (all + 1) / 2);
}

/// Every seventh comes by a try first.
fn combines<const BOUND: u32, const SPIN_NS: u32>(threads: u64, rounds: u64) {
    let lock = DsmSynch::<Pair, Linux, BOUND, SPIN_NS>::new((0, 0));
    contend(threads, rounds, |round| {
        if round % 7 == 0
            && let Ok(number) = lock.try_with(step)
        {
            return number;
        }
        lock.with(step)
    });
    assert_eq!(lock.into_inner().0, threads * rounds);
}

#[test]
fn combined_sections_exclude() {
    combines::<64, 1_000_000>(2, 20_000);
    combines::<64, 1_000_000>(3, 5_000);
    combines::<64, 0>(8, 2_000);
    // Each leads for itself alone, or hands over every other time.
    combines::<1, 0>(4, 2_000);
    combines::<2, 0>(4, 2_000);
}

/// `with` while a thread of its own serves `lock`.
fn served<T: Send, R, const CPUS: usize, const SPIN_NS: u32>(
    lock: &Rcl<T, Linux, CPUS, SPIN_NS>,
    with: impl FnOnce() -> R,
) -> R {
    thread::scope(|scope| {
        let server = lock.lend().expect("nobody serves yet");
        scope.spawn(|| server.run());
        assert!(lock.lend().is_none(), "one serves at a time");
        // Stopped also where that panics: otherwise the panic would not be seen.
        let result = catch_unwind(AssertUnwindSafe(with));
        assert!(lock.stop());
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn serves<const CPUS: usize, const SPIN_NS: u32>(threads: u64, rounds: u64) {
    let mut lock = Rcl::<Pair, Linux, CPUS, SPIN_NS>::new((0, 0));
    served(&lock, || contend(threads, rounds, |_| lock.with(step)));
    assert!(!lock.stop(), "nobody serves");
    assert_eq!(lock.get_mut().0, threads * rounds);
}

#[test]
fn a_server_runs_all_sections() {
    serves::<64, 1_000_000>(2, 5_000);
    serves::<64, 0>(8, 1_000);
}

#[test]
fn clients_share_mailboxes() {
    serves::<1, 0>(4, 200);
    serves::<2, 100_000>(4, 200);
}

/// A client that comes while no server serves waits, and is served by the next.
#[test]
fn clients_wait_for_a_server() {
    let lock = Rcl::<Pair, Linux, 4, 0>::new((0, 0));
    let (send, came) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..2 {
            let (lock, send) = (&lock, send.clone());
            scope.spawn(move || send.send(lock.with(step)));
        }
        assert!(came.recv_timeout(Duration::from_millis(50)).is_err(), "nobody serves");
        // Given back without having served.
        drop(lock.lend());
        assert!(came.recv_timeout(Duration::from_millis(50)).is_err(), "nobody serves");
        served(&lock, || {
            let mut numbers = [came.recv(), came.recv()].map(Result::unwrap);
            numbers.sort_unstable();
            assert_eq!(numbers, [1, 2]);
        });
    });
}

/// A section may take other locks of the kind, in an order; with more threads than either combines.
#[test]
fn sections_nest() {
    let (outer, inner) = (Sleepy::<Pair, 2>::new((0, 0)), Sleepy::<Pair, 2>::new((0, 0)));
    let last = Rcl::<Pair, Linux, 4, 0>::new((0, 0));
    served(&last, || {
        contend(4, 500, |_| {
            outer.with(|pair| {
                let number = inner.with(|pair| {
                    let number = step(pair);
                    assert_eq!(last.with(step), number);
                    number
                });
                assert_eq!(step(pair), number);
                number
            })
        });
    });
}

/// A client waits for as long as a section waits, and no wake is lost.
#[test]
fn a_section_may_wait() {
    let lock = Combining::new((0, 0));
    contend(3, 20, |_| {
        lock.with(|pair| {
            thread::sleep(Duration::from_micros(200));
            step(pair)
        })
    });
}

/// Threads that come with a section that panics, and those that run it, panic; all others are
/// served, and the value stays usable.
#[test]
fn others_are_served_though_a_section_panics() {
    fn survive(with: impl Fn(bool) -> u64 + Sync, threads: u64) -> u64 {
        let served = AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 0..threads {
                let (with, served) = (&with, &served);
                scope.spawn(move || {
                    for round in 0..200 {
                        let panics = thread == 0 && round % 10 == 0;
                        let result = catch_unwind(AssertUnwindSafe(|| with(panics)));
                        assert!(!panics || result.is_err());
                        served.fetch_add(u64::from(result.is_ok()), Relaxed);
                    }
                });
            }
        });
        served.into_inner()
    }
    let section = |pair: &mut Pair, panics: bool| {
        let number = step(pair);
        assert!(!panics, "as it is to");
        number
    };
    let lock = Sleepy::<Pair, 4>::new((0, 0));
    let served = survive(|panics| lock.with(|pair| section(pair, panics)), 4);
    assert_eq!(lock.with(|pair| pair.0), 800, "each section was run");
    // Of each section that panics, one more may have been told so: the thread that ran it.
    assert!((800 - 2 * 20..=800 - 20).contains(&served), "{served}");
}

/// A server that a section has ended lets another one serve.
#[test]
fn a_panic_ends_a_server_and_no_client() {
    let lock = Rcl::<Pair, Linux, 4, 0>::new((0, 0));
    thread::scope(|scope| {
        let server = lock.lend().expect("nobody serves yet");
        let server = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| server.run())).is_err());
        let client = catch_unwind(AssertUnwindSafe(|| lock.with(|_| panic!("as it is to"))));
        assert!(client.is_err() && server.join().unwrap());
    });
    assert_eq!(served(&lock, || lock.with(step)), 1);
}

/// A thread that has ended leaves nothing behind, nor does a lock that was dropped.
#[test]
fn nothing_is_leaked() {
    fn nodes(use_one: fn()) -> u32 {
        let before = arena().high_water();
        for _ in 0..4 {
            use_one();
        }
        arena().high_water() - before
    }
    // In a process of its own: other tests take nodes too. Each thread that has ended keeps two.
    let few = |nodes: u32, threads: u32| nodes <= 4 * threads * 2 + 2;
    assert!(in_child(FORKS[0].1, || few(nodes(|| combines::<64, 0>(3, 300)), 3)));
    assert!(in_child(FORKS[0].1, || few(nodes(|| serves::<8, 0>(3, 300)), 4)));
}

/// A section that forks may go on in the child for as long as it does not return.
#[test]
fn a_lock_that_is_free_at_a_fork_is_free_in_the_child() {
    let lock = Combining::new((0, 0));
    assert_eq!(lock.with(step), 1);
    let served_before = Rcl::<Pair, Linux, 4, 0>::new((0, 0));
    assert_eq!(served(&served_before, || served_before.with(step)), 1);
    assert!(in_child(FORKS[0].1, || {
        let here = lock.with(step) == 2 && lock.try_with(step).ok() == Some(3);
        here && served(&served_before, || served_before.with(step)) == 2
    }));
    assert_eq!(lock.with(step), 2);
}

#[test]
fn they_have_the_sizes_that_are_stated() {
    assert_eq!(size_of::<Combining<()>>(), 4);
    assert_eq!(size_of::<Rcl<(), Linux>>(), 8 + 64 * 4);
    assert_eq!(size_of::<Rcl<(), Linux, 192>>(), 8 + 192 * 4);
}
