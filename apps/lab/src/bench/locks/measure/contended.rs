//! Many threads at one lock, for a bounded time.
//!
//! ```text
//!   threads:  ── ask ── wait ── critical section ── release ── elsewhere ──┐
//!              ▲                                                           │
//!              └───────────────────────────────────────────────────────────┘
//!   time:     │ warm-up │ measured: windows of 10 ms │ stop: waiters get their turn and leave
//! ```
//!
//! The critical section adds to two words, 128 bytes apart; `5us` then stays for 5 µs of the
//! time-stamp counter (which advances even when the thread loses its CPU, so no work is left over).
//! Long sections stay for 100 µs to 10 ms, or sleep for 1 ms. A section that only reads reads both
//! words, with the stay in between. Which thread reads when is chosen at random, identically for
//! all locks. Elsewhere is a loop of 50 volatile writes and one reading of the counter; a reader in
//! the case `continuous` has no such phase.
//!
//! The time of the request is taken each time, outside of the critical section. The time of the
//! acquisition is taken inside, and would lengthen a short section by a fifth: there one
//! acquisition of eight is timed, and stands for eight; rare writers are always timed. A thread
//! that still waits when the time is up is always timed up to then, so that a lock that starves a
//! thread for the whole repetition shows it.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use antiphon_report::stats::Random;

use super::tally::{Had, Tally};
use super::{Case, Contended, Figures, Order, Outcome};
use crate::bench::locks::subjects::{Family, Subject};
use crate::bench::usage::Usage;
use crate::ticks;

/// Iterations of the loop outside of the critical section.
const ELSEWHERE: u32 = 50;
/// One of `SAMPLE` acquisitions of a short section is timed.
const SAMPLE: u64 = 8;
/// From this percentage of readers on, each writer is timed.
const RARE: u32 = 90;
const WINDOW_NS: f64 = 1e7;
/// How long an owner sleeps in the case `sleep`.
const SLEEP: Duration = Duration::from_millis(1);

/// Two cache lines of most machines, so that the neighbouring line is not prefetched.
#[repr(align(128))]
struct Line<T>(T);

type Words = [Line<UnsafeCell<u64>>; 2];

struct Shared<S> {
    lock: Line<S>,
    words: Words,
    clock: Line<PhaseClock>,
    ready: Barrier,
}

/// Written twice per repetition, read in each iteration.
struct PhaseClock {
    /// Time at which the measured time began, in ticks; 0 before.
    begin: AtomicU64,
    /// Time at which the measured time ended, in ticks; 0 before.
    end: AtomicU64,
}

// SAFETY: the words are accessed only under the lock, and written only by an exclusive owner; the
// checks of their sums and of what readers see are there to find a lock that breaks this promise.
// Everything else is `Sync` by itself.
unsafe impl<S: Sync> Sync for Shared<S> {}

/// Measures `lock` under the conditions of `order`.
pub fn run<S: Subject>(lock: S, order: &Order) -> Outcome {
    let shared = Shared {
        lock: Line(lock),
        words: [const { Line(UnsafeCell::new(0)) }; 2],
        clock: Line(PhaseClock { begin: AtomicU64::new(0), end: AtomicU64::new(0) }),
        ready: Barrier::new(order.threads + 1),
    };
    let measured = Duration::from_secs_f64(order.seconds);
    let warm_up = (measured / 5).max(Duration::from_millis(10));
    let (tallies, usage, spent) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..order.threads)
            .map(|index| {
                scope.spawn({
                    let shared = &shared;
                    move || work(shared, order, index)
                })
            })
            .collect();
        shared.ready.wait();
        std::thread::sleep(warm_up);
        let before = Usage::now();
        let begin = ticks::now();
        // Both Relaxed: they carry no other data.
        shared.clock.0.begin.store(begin.max(1), Relaxed);
        std::thread::sleep(measured);
        let end = ticks::now();
        shared.clock.0.end.store(end.max(1), Relaxed);
        let spent = ticks::since(begin, end);
        let usage = Usage::now().since(before);
        let join = |thread: std::thread::ScopedJoinHandle<'_, Tally>| match thread.join() {
            Ok(tally) => tally,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (threads.into_iter().map(join).collect::<Vec<_>>(), usage, spent)
    });
    if let Some(violation) = violation(shared.words, &tallies) {
        return Outcome::Violation(violation);
    }
    let figures = Contended::of(&tallies, &usage, order.ticks, spent, &sides(order));
    Outcome::Figures(Figures::Contended(Box::new(figures)))
}

/// Returns the kinds of acquisition with separate figures.
fn sides(order: &Order) -> Vec<Had> {
    let reads: Vec<_> = (0..order.threads).map(|index| Lot::new(order, index).reads).collect();
    let mut sides = Vec::new();
    if order.family == Family::Shared {
        sides.extend(reads.iter().any(|&reads| reads > 0).then_some(Had::Shared));
        sides.extend(reads.iter().any(|&reads| reads < 100).then_some(Had::Alone));
    }
    sides
}

/// Describes how the lock has failed, if it has.
fn violation(words: Words, tallies: &[Tally]) -> Option<String> {
    let written: u64 = tallies.iter().map(|tally| tally.written).sum();
    let torn: u64 = tallies.iter().map(|tally| tally.torn).sum();
    if torn > 0 {
        return Some(format!("readers are not kept out: {torn} saw half of a write"));
    }
    let sums = words.map(|word| word.0.into_inner());
    sums.into_iter().find(|&sum| sum != written).map(|sum| {
        format!("mutual exclusion is broken: {written} critical sections left a sum of {sum}")
    })
}

/// Chooses at random whether a thread reads or writes in each iteration.
struct Lot {
    random: Random,
    /// Percentage of critical sections that only read.
    reads: u32,
}

impl Lot {
    fn new(order: &Order, index: usize) -> Self {
        let reads = match (order.case, order.reads) {
            (Case::Continuous, _) if index > 0 => 100,
            (_, reads) => reads.unwrap_or(0),
        };
        Self { random: Random(index as u64), reads }
    }

    #[inline]
    fn draw(&mut self) -> Had {
        let shared = self.reads > 0 && self.random.draw() % 100 < u64::from(self.reads);
        if shared { Had::Shared } else { Had::Alone }
    }
}

/// The work of one thread.
fn work<S: Subject>(shared: &Shared<S>, order: &Order, index: usize) -> Tally {
    let mut tally = Tally::new(order.ticks.of_ns(WINDOW_NS));
    let stay = order.ticks.of_ns(order.case.stay_ns().into());
    let sleeps = order.case == Case::Sleep;
    let mut lot = Lot::new(order, index);
    let rare = (RARE..100).contains(&lot.reads);
    let every = |had| if stay > 0 || sleeps || rare && had == Had::Alone { 1 } else { SAMPLE };
    let rests = order.case != Case::Continuous || index == 0;
    let clock = &shared.clock.0;
    // Each thread starts its sample at another acquisition of a series.
    let mut turn = index as u64;
    shared.ready.wait();
    loop {
        let had = lot.draw();
        let every = every(had);
        let asked = ticks::now();
        tally.begin_by(clock.begin.load(Relaxed));
        tally.advance(asked);
        if clock.end.load(Relaxed) != 0 {
            return tally;
        }
        turn += 1;
        let sampled = turn.is_multiple_of(every);
        let arrive = || {
            let end = clock.end.load(Relaxed);
            let then = if sampled && end == 0 { ticks::now() } else { 0 };
            (then, end)
        };
        let (then, end) = match had {
            Had::Alone => shared.lock.0.hold(|| {
                let arrived = arrive();
                write(&shared.words, stay);
                if sleeps {
                    std::thread::sleep(SLEEP);
                }
                arrived
            }),
            Had::Shared => shared.lock.0.share(|| {
                let arrived = arrive();
                tally.torn += u64::from(!read(&shared.words, stay));
                arrived
            }),
        };
        tally.written += u64::from(had == Had::Alone);
        // A wait that began before the measured time and ended in it counts in full.
        tally.begin_by(clock.begin.load(Relaxed));
        match (tally.begun(), end) {
            (false, _) => {}
            (true, 0) => {
                tally.count(had);
                if sampled {
                    tally.wait(had, (asked, then), every);
                }
            }
            (true, end) => tally.wait(had, (asked, end), 1),
        }
        if rests {
            elsewhere();
        }
    }
}

/// The critical section of an exclusive owner.
#[inline]
fn write(words: &Words, stay: u64) {
    for word in words {
        // SAFETY: the address is valid; the lock must keep other threads from writing, and volatile
        // keeps the two accesses as written even if it fails.
        unsafe { ptr::write_volatile(word.0.get(), ptr::read_volatile(word.0.get()) + 1) };
    }
    wait(stay);
}

/// The critical section of a reader. Returns whether no thread has written meanwhile.
#[inline]
fn read(words: &Words, stay: u64) -> bool {
    // SAFETY: as in `write`; the lock must keep all threads from writing.
    let second = unsafe { ptr::read_volatile(words[1].0.get()) };
    wait(stay);
    // SAFETY: the address is valid, as in `write`; the lock must keep all threads from writing.
    second == unsafe { ptr::read_volatile(words[0].0.get()) }
}

#[inline]
fn wait(stay: u64) {
    if stay > 0 {
        let begin = ticks::now();
        while ticks::since(begin, ticks::now()) < stay {
            std::hint::spin_loop();
        }
    }
}

#[inline]
fn elsewhere() {
    let mut turns = 0_u32;
    while turns < ELSEWHERE {
        // SAFETY: a local variable; volatile keeps the compiler from removing the loop.
        unsafe { ptr::write_volatile(&raw mut turns, ptr::read_volatile(&raw const turns) + 1) };
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::measure;
    use super::*;
    use crate::ticks::Ticks;
    use std::cell::OnceCell;
    use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
    use std::thread::{self, ThreadId};

    fn order(seconds: f64) -> Order {
        let (family, subject, ticks) = (Family::Exclusive, String::new(), Ticks::calibrate());
        Order { family, subject, case: Case::Short, reads: None, threads: 2, seconds, ticks }
    }

    /// Admits one thread as often as it likes, and the others only when it has ended.
    struct Monopoly {
        first: OnceLock<ThreadId>,
        ended: Arc<Ended>,
        lock: Mutex<()>,
    }

    #[derive(Default)]
    struct Ended {
        flag: Mutex<bool>,
        changed: Condvar,
    }

    /// A value in the first thread's own memory, so that it is dropped with the thread.
    struct Ends(Arc<Ended>);

    impl Drop for Ends {
        fn drop(&mut self) {
            *self.0.flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.0.changed.notify_all();
        }
    }

    thread_local! {
        static ENDS: OnceCell<Ends> = const { OnceCell::new() };
    }

    impl Subject for Monopoly {
        fn new() -> Result<Self, String> {
            Ok(Self { first: OnceLock::new(), ended: Arc::default(), lock: Mutex::new(()) })
        }

        fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
            let me = thread::current().id();
            if *self.first.get_or_init(|| me) == me {
                ENDS.with(|ends| _ = ends.get_or_init(|| Ends(Arc::clone(&self.ended))));
            } else {
                let flag = self.ended.flag.lock().unwrap_or_else(PoisonError::into_inner);
                drop(self.ended.changed.wait_while(flag, |ended| !*ended));
            }
            let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let result = section();
            drop(guard);
            result
        }
    }

    #[test]
    fn a_thread_that_starves_from_beginning_to_end_is_seen() {
        let lock = Monopoly::new().unwrap_or_else(|missing| panic!("{missing}"));
        let seconds = 0.3;
        let Outcome::Figures(Figures::Contended(seen)) = run(lock, &order(seconds)) else {
            panic!("no figures")
        };
        // On a busy machine a thread may begin to wait late, but not that late.
        let starved = seconds * 1e9 / 10.0;
        assert!(seen.all.longest_wait_ns >= starved, "{seen:?}");
        assert!(seen.all.wait_ns_at_random_instant.p99 >= starved, "{seen:?}");
        assert!(seen.all.acquire_ns.p50 < starved, "{seen:?}");
        assert!(seen.jain.is_some_and(|jain| (jain - 0.5).abs() < 0.01), "{seen:?}");
        assert!(seen.jain_10ms.is_some_and(|jain| (jain - 0.5).abs() < 0.01), "{seen:?}");
    }

    /// A lock that excludes no thread.
    pub(crate) struct Open;

    impl Subject for Open {
        fn new() -> Result<Self, String> {
            Ok(Self)
        }

        fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
            section()
        }
    }

    #[test]
    fn a_lock_that_keeps_nobody_out_is_found_out() {
        // Two threads on one CPU may not overlap for a while.
        let found = (0..50).any(|_| matches!(run(Open, &order(0.02)), Outcome::Violation(_)));
        assert!(found);
    }

    /// A lock that excludes writers from each other, but not from readers.
    struct Windowed(Mutex<()>);

    impl Subject for Windowed {
        fn new() -> Result<Self, String> {
            Ok(Self(Mutex::new(())))
        }

        fn hold<R>(&self, section: impl FnOnce() -> R) -> R {
            let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let result = section();
            drop(guard);
            result
        }

        fn share<R>(&self, section: impl FnOnce() -> R) -> R {
            section()
        }
    }

    #[test]
    fn a_lock_that_lets_a_writer_in_beside_readers_is_found_out() {
        let order = Order {
            family: Family::Shared,
            case: Case::FiveMicroseconds,
            reads: Some(50),
            ..order(0.02)
        };
        let found = (0..50).any(|_| {
            let lock = Windowed::new().unwrap_or_else(|missing| panic!("{missing}"));
            matches!(run(lock, &order), Outcome::Violation(what) if what.contains("readers"))
        });
        assert!(found);
    }

    #[test]
    fn readers_and_writers_are_told_apart_by_lot_and_by_role() {
        let sides = |case, reads, threads| {
            let (family, subject) = (Family::Shared, "std".to_owned());
            let order = Order { family, subject, case, reads, threads, ..order(0.02) };
            let Ok(Outcome::Figures(Figures::Contended(seen))) = measure(&order) else {
                panic!("no figures")
            };
            (seen.readers.is_some(), seen.writers.is_some())
        };
        assert_eq!(sides(Case::Short, Some(100), 2), (true, false));
        assert_eq!(sides(Case::Short, Some(0), 2), (false, true));
        assert_eq!(sides(Case::Continuous, None, 1), (false, true));
        assert_eq!(sides(Case::Continuous, None, 2), (true, true));
    }
}
