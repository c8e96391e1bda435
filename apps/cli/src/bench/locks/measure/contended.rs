//! Many threads at one lock, for a bounded time.
//!
//! ```text
//!   threads:  ── ask ── wait ── critical section ── release ── elsewhere ──┐
//!              ▲                                                           │
//!              └───────────────────────────────────────────────────────────┘
//!   time:     │ warm-up │ measured: windows of 10 ms │ stop: who waits gets its turn and leaves
//! ```
//!
//! The critical section adds to two words, 128 bytes apart; `5us` then stays for 5 µs of the
//! time-stamp counter (which goes on when the thread loses its CPU, so no work is left over).
//! Elsewhere is a loop of 50 volatile writes and one look at the counter.
//!
//! The moment of asking is noted each time, outside of the critical section. The moment of having
//! is noted inside, and would lengthen a short section by a fifth: there one acquisition of eight
//! is timed, and stands for eight. Who still waits when the time is up is timed always, up to then:
//! a lock that starves a thread for the whole repetition must not get away with it.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tally::Tally;
use super::{Case, Order, Outcome, Ticks, ticks};
use crate::bench::locks::subjects::Subject;
use crate::stats::{Histogram, jain};

/// Figures of a repetition. A quantile or a mean of nothing is absent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contended {
    /// Critical sections a second.
    pub ops_per_s: f64,
    /// Jain's index of the threads' acquisitions.
    pub jain: Option<f64>,
    /// How long an acquisition took.
    pub acquire_ns: Waits,
    /// How long the wait was that a random waiting thread was in at a random instant.
    pub wait_ns_at_random_instant: AtInstant,
    /// The longest acquisition that was timed.
    pub longest_wait_ns: f64,
    /// The mean of Jain's index over windows of 10 ms.
    pub jain_10ms: Option<f64>,
    /// Context switches, wanted or not, in a thousand acquisitions.
    pub switches_per_kop: f64,
    /// CPU time of the process for an acquisition.
    pub cpu_ns_per_op: f64,
}

/// Quantiles of acquisitions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Waits {
    /// The median.
    pub p50: f64,
    /// One of a hundred took longer.
    pub p99: f64,
    /// One of a thousand took longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Quantiles of waiting time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AtInstant {
    /// Half of all waiting was in waits up to this long.
    pub p50: f64,
    /// A hundredth of all waiting was in longer waits.
    pub p99: f64,
}

/// Turns of the loop outside of the critical section.
const ELSEWHERE: u32 = 50;
/// One of so many acquisitions of a short section is timed.
const SAMPLE: u64 = 8;
const WINDOW_NS: f64 = 1e7;
const FIVE_MICROSECONDS_NS: f64 = 5_000.0;

/// Two lines of most machines' caches, so that a neighbour is not fetched along.
#[repr(align(128))]
struct Line<T>(T);

struct Shared<S> {
    lock: Line<S>,
    words: [Line<UnsafeCell<u64>>; 2],
    clock: Line<PhaseClock>,
    ready: Barrier,
}

/// Written twice a repetition, read in each turn.
struct PhaseClock {
    /// When the measured time began, in ticks; 0 before.
    begin: AtomicU64,
    /// When it ended, in ticks; 0 before.
    end: AtomicU64,
}

// SAFETY: the words are touched only under the lock; the check of their sums is there to find a
// lock that breaks this promise. All else is `Sync` by itself.
unsafe impl<S: Sync> Sync for Shared<S> {}

/// Measures `lock` as `order` says.
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
        // Relaxed, both: they carry nothing but themselves.
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
    let acquired: u64 = tallies.iter().map(|tally| tally.acquired).sum();
    for word in shared.words {
        let sum = word.0.into_inner();
        if sum != acquired {
            return Outcome::Violation(format!(
                "mutual exclusion is broken: {acquired} critical sections left a sum of {sum}"
            ));
        }
    }
    Outcome::Contended(figures(&tallies, &usage, order.ticks, spent))
}

/// One thread.
fn work<S: Subject>(shared: &Shared<S>, order: &Order, index: usize) -> Tally {
    let mut tally = Tally::new(order.ticks.of_ns(WINDOW_NS));
    let (stay, every) = match order.case {
        Case::FiveMicroseconds => (order.ticks.of_ns(FIVE_MICROSECONDS_NS), 1),
        _ => (0, SAMPLE),
    };
    let clock = &shared.clock.0;
    // Threads don't time the same acquisitions of a row.
    let mut turn = index as u64;
    shared.ready.wait();
    loop {
        let asked = ticks::now();
        tally.begin_by(clock.begin.load(Relaxed));
        tally.advance(asked);
        if clock.end.load(Relaxed) != 0 {
            return tally;
        }
        turn += 1;
        let sampled = turn.is_multiple_of(every);
        let (had, end) = shared.lock.0.hold(|| {
            let end = clock.end.load(Relaxed);
            let had = if sampled && end == 0 { ticks::now() } else { 0 };
            critical_section(&shared.words, stay);
            (had, end)
        });
        tally.acquired += 1;
        // A wait that began before the measured time and ended in it counts, as long as it was.
        tally.begin_by(clock.begin.load(Relaxed));
        match (tally.begun(), end) {
            (false, _) => {}
            (true, 0) => {
                tally.counted += 1;
                if sampled {
                    tally.wait(asked, had, every);
                }
            }
            (true, end) => tally.wait(asked, end, 1),
        }
        elsewhere();
    }
}

#[inline]
fn critical_section(words: &[Line<UnsafeCell<u64>>; 2], stay: u64) {
    for word in words {
        // SAFETY: the address is valid; that nobody else writes is what the lock is for, and
        // volatile keeps the two accesses as they stand even if it fails.
        unsafe { ptr::write_volatile(word.0.get(), ptr::read_volatile(word.0.get()) + 1) };
    }
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
        // SAFETY: a local variable; volatile so that the loop stays a loop.
        unsafe { ptr::write_volatile(&raw mut turns, ptr::read_volatile(&raw const turns) + 1) };
    }
}

fn figures(tallies: &[Tally], usage: &Usage, ticks: Ticks, spent: u64) -> Contended {
    let counted: u64 = tallies.iter().map(|tally| tally.counted).sum();
    let mut waits = Histogram::new();
    tallies.iter().for_each(|tally| waits.merge(&tally.waits));
    let ops = counted.max(1) as f64;
    let ns = |ticks_seen: f64| ticks.to_ns(ticks_seen);
    let longest = ns(waits.max() as f64);
    Contended {
        ops_per_s: counted as f64 / (ticks.to_ns(spent as f64) / 1e9),
        jain: jain(tallies.iter().map(|tally| tally.counted)),
        acquire_ns: Waits {
            p50: ns(waits.quantile(0.5)),
            p99: ns(waits.quantile(0.99)),
            p999: ns(waits.quantile(0.999)),
            max: longest,
        },
        wait_ns_at_random_instant: AtInstant {
            p50: ns(waits.length_biased_quantile(0.5)),
            p99: ns(waits.length_biased_quantile(0.99)),
        },
        longest_wait_ns: longest,
        jain_10ms: jain_by_window(tallies),
        switches_per_kop: usage.switches as f64 * 1e3 / ops,
        cpu_ns_per_op: usage.cpu_ns as f64 / ops,
    }
}

/// The mean of Jain's index over the windows that all threads have finished. A window in which no
/// thread got the lock has no index.
fn jain_by_window(tallies: &[Tally]) -> Option<f64> {
    let windows = tallies.iter().map(|tally| tally.windows.len()).min().unwrap_or(0);
    let indices: Vec<_> = (0..windows)
        .filter_map(|window| jain(tallies.iter().map(|tally| tally.windows[window])))
        .collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

/// What the kernel has counted for this process.
#[derive(Clone, Copy)]
struct Usage {
    switches: u64,
    cpu_ns: u64,
}

impl Usage {
    fn now() -> Self {
        // SAFETY: all fields are numbers, of which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is ours to write; the call can't fail with these arguments.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        }
    }

    fn since(self, before: Self) -> Self {
        Self { switches: self.switches - before.switches, cpu_ns: self.cpu_ns - before.cpu_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::OnceCell;
    use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
    use std::thread::{self, ThreadId};

    fn order(seconds: f64) -> Order {
        let subject = String::new();
        Order { subject, case: Case::Short, threads: 2, seconds, ticks: Ticks::calibrate() }
    }

    /// Lets one thread in as often as it likes, and the others when that one has ended.
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

    /// In the first thread's own memory, so that it is dropped with the thread.
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
        let Outcome::Contended(seen) = run(lock, &order(seconds)) else { panic!("no figures") };
        // On a busy machine it may begin to wait late; not that late.
        let starved = seconds * 1e9 / 10.0;
        assert!(seen.longest_wait_ns >= starved, "{seen:?}");
        assert!(seen.wait_ns_at_random_instant.p99 >= starved, "{seen:?}");
        assert!(seen.acquire_ns.p50 < starved, "{seen:?}");
        assert!(seen.jain.is_some_and(|jain| (jain - 0.5).abs() < 0.01), "{seen:?}");
        assert!(seen.jain_10ms.is_some_and(|jain| (jain - 0.5).abs() < 0.01), "{seen:?}");
    }

    /// Keeps nobody out.
    struct Open;

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
        // Two threads on one CPU may miss each other for a while.
        let found = (0..50).any(|_| matches!(run(Open, &order(0.02)), Outcome::Violation(_)));
        assert!(found);
    }
}
