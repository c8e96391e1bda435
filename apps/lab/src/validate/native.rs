//! The workload on this machine.
//!
//! Each thread stays on its CPU and periodically records a mark: the time, its rounds, and how
//! often it lost its CPU. Afterwards time is cut into short windows, and those in which some thread
//! was disturbed are dropped: the rest is as on an unshared machine.

use std::cell::{Cell, UnsafeCell};
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_linux::{Linux, ticks};
use antiphon_report::failure::Failure;
use antiphon_sync::lock::Lock;

use super::marks::{Mark, between, switches};
use super::workload::{Case, Lines, Stage, Visitor, alone, contend, hand_over};
use crate::pinned::{Figure, Switches, on_each};
use crate::ticks::Ticks;

/// Interval between marks.
const MARK_NS: f64 = 50_000.0;
/// Length of the windows that time is cut into.
const WINDOW_NS: f64 = 300_000.0;
/// Warm-up at the beginning, which does not count.
const WARM_UP_NS: f64 = 5_000_000.0;
/// Warm-up if threads outnumber CPUs: by then each thread has had a CPU several times.
const CROWDED_WARM_UP_NS: f64 = super::settings::CROWDED_WARM_UP_NS as f64;
/// Maximal number of hand-overs that a thread keeps.
const KEPT: usize = 1 << 16;
/// Factor of the work's loop: an odd number with many bits, so that no compiler can compute the
/// result.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The work of `turns` iterations: a chain of multiplications, each of which depends on the
/// previous.
#[inline]
fn chain(turns: u32, start: u64) -> u64 {
    (0..turns).fold(start, |value, _| value.wrapping_mul(FACTOR).wrapping_add(1))
}

/// The speed of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    watch: Ticks,
    pace: Pace,
}

/// Conversion from nanoseconds to iterations of the work's loop.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Iterations per nanosecond, in 65 536ths.
    turns_per_ns: u64,
    /// Time of a call besides its iterations, mostly a misprediction: the end of a loop of random
    /// length. In 65 536ths of a nanosecond.
    call: u64,
}

impl Pace {
    #[inline]
    fn work(self, ns: u32, start: u64) -> u64 {
        let ns = (u64::from(ns) << 16).saturating_sub(self.call);
        let turns = ((u128::from(ns) * u128::from(self.turns_per_ns)) >> 32) as u32;
        black_box(chain(turns, start))
    }
}

impl Rates {
    /// Measures the rates on the first of `places`, for the work of `case`; takes some 50 ms.
    ///
    /// # Errors
    ///
    /// If this CPU can't be used, or is not available for long enough.
    pub fn measure(places: &[usize], case: Case) -> Result<Self, Failure> {
        const TURNS: u32 = 20_000;
        let watch = Ticks::calibrate();
        let figure = |body: &(dyn Fn() + Sync)| {
            let windows = on_each(&places[..1], |_| {
                (0..400).map(|_| watch.undisturbed(body)).collect::<Vec<_>>()
            })?;
            let what = "no CPU is free for long enough: try when the machine is idle";
            Figure::of(&windows.concat()).ok_or_else(|| Failure::measured(what))
        };
        let whole = figure(&|| _ = black_box(chain(black_box(TURNS), 1)))?;
        let turns_per_ns = (f64::from(TURNS) * 65_536.0 / whole.median) as u64;
        let pace = Pace { turns_per_ns, call: 0 };
        if case.away_ns == 0 {
            return Ok(Self { watch, pace });
        }
        // The time that the case asks for, and the time that it actually takes.
        let asked = alone(case, |_| {});
        let took = figure(&|| {
            let mut value = 0;
            alone(case, |ns| value = pace.work(ns, value));
        })?;
        let beside_ns = (took.median - asked.ns as f64) / asked.calls as f64;
        let call = (beside_ns.max(0.0) * 65_536.0) as u64;
        Ok(Self { watch, pace: Pace { call, ..pace } })
    }
}

/// A thread of this machine.
struct Thread<'a> {
    rates: Rates,
    /// Time to stop, in ticks.
    end: u64,
    /// Rounds between two readings of the counter, minus one.
    mask: u64,
    rounds: u64,
    next: u64,
    marks: &'a mut Vec<Mark>,
}

impl Stage for Thread<'_> {
    type P = Linux;

    #[inline]
    fn goes_on(&mut self) -> bool {
        self.rounds += 1;
        self.rounds & self.mask != 0 || self.look()
    }

    #[inline]
    fn write(&self, lines: &Lines, count: usize) -> u64 {
        let mut sum = 0;
        for line in &lines.0[..count] {
            let word = Cell::as_ptr(&line.word);
            // SAFETY: the word is valid; the lock must keep other threads from it, and volatile
            // keeps the accesses as written.
            unsafe {
                sum = ptr::read_volatile(word) + 1;
                ptr::write_volatile(word, sum);
            }
        }
        sum
    }

    #[inline]
    fn work(&self, ns: u32, start: u64) -> u64 {
        self.rates.pace.work(ns, start)
    }
}

impl Thread<'_> {
    /// Returns the number of rounds so far. The count begins such that the first call reads the
    /// counter, and that call is before the first round.
    fn made(&self) -> u64 {
        self.rounds - self.mask - 1
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self) -> bool {
        let at = ticks();
        if at >= self.next {
            self.next = at + self.rates.watch.of_ns(MARK_NS);
            let rounds = self.made();
            self.marks.push(Mark { at, rounds, switches: Switches::now() });
        }
        at < self.end
    }
}

/// The parameters of a run.
pub struct Run<'a> {
    /// The rates of the machine.
    pub rates: Rates,
    /// The CPUs of the threads.
    pub places: &'a [usize],
    /// The work of the threads.
    pub case: Case,
    /// Length of the run, in nanoseconds.
    pub ns: f64,
    /// Whether threads outnumber CPUs: then losing a CPU is part of the measurement, and so are
    /// hand-overs.
    pub crowded: bool,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Rounds of all threads per second.
    pub rounds_per_s: Figure,
    /// Median time of hand-overs between threads, in nanoseconds; 0 without hand-overs.
    pub hand_over_ns: f64,
    /// Context switches of the threads per thousand rounds.
    pub switches_per_1000: f64,
}

/// The state that the threads of a run share.
struct Shared<L> {
    lock: Own<L>,
    lines: Own<UnsafeCell<Lines>>,
    begin: Own<AtomicU64>,
    ready: Own<AtomicU64>,
}

/// A value on cache lines that hold nothing else, including lines that are prefetched with them.
#[repr(align(128))]
struct Own<T>(T);

// SAFETY: the lines are accessed only under the lock; the rest is `Sync` by itself.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl Visitor for Run<'_> {
    type Output = Result<Option<Measured>, Failure>;

    /// Returns `None` if the threads were disturbed too often for a figure.
    fn visit<L: Lock>(self) -> Self::Output {
        let shared = Shared {
            lock: Own(L::NEW),
            lines: Own(UnsafeCell::new(Lines::default())),
            begin: Own(AtomicU64::new(0)),
            ready: Own(AtomicU64::new(0)),
        };
        let threads = on_each(self.places, |number| self.thread(&shared, number))?;
        let begin = shared.begin.0.load(Relaxed);
        let (marks, handed): (Vec<_>, Vec<_>) = threads.into_iter().unzip();
        let written = shared.lines.0.into_inner().0.map(|line| line.word.get());
        let rounds: u64 = marks.iter().map(|(_, rounds)| rounds).sum();
        let torn = written[..self.case.lines].iter().any(|&word| word != rounds);
        if torn {
            let what = format!("mutual exclusion is broken: {rounds} rounds left {written:?}");
            return Err(Failure::measured(what));
        }
        let marks: Vec<_> = marks.into_iter().map(|(marks, _)| marks).collect();
        Ok(self.measured(begin, &marks, handed.concat()))
    }
}

/// A thread's marks and rounds, and its hand-overs.
type Done = ((Vec<Mark>, u64), Vec<f64>);

impl Run<'_> {
    fn warm_up_ns(&self) -> f64 {
        if self.crowded { CROWDED_WARM_UP_NS } else { WARM_UP_NS }
    }

    fn thread<L: Lock>(&self, shared: &Shared<L>, number: usize) -> Done {
        let watch = self.rates.watch;
        let expected = (self.ns + self.warm_up_ns()) / MARK_NS;
        let mut marks = Vec::with_capacity(2 * expected as usize + 64);
        let mut handed = Vec::with_capacity(if self.crowded { KEPT } else { 0 });
        let begin = self.together(shared);
        let from = begin + watch.of_ns(self.warm_up_ns());
        let end = from + watch.of_ns(self.ns);
        let mask = if self.crowded { 0 } else { 15 };
        let (rounds, next) = (mask, 0);
        let mut stage = Thread { rates: self.rates, end, mask, rounds, next, marks: &mut marks };
        // SAFETY: the workload accesses them only under the lock.
        let lines = unsafe { &*shared.lines.0.get() };
        if self.crowded {
            hand_over(&mut stage, &shared.lock.0, lines, (self.case, number), |ns| {
                if handed.len() < KEPT && ticks() >= from {
                    handed.push(ns as f64);
                }
            });
        } else {
            contend(&mut stage, &shared.lock.0, lines, self.case, number);
        }
        let rounds = stage.made();
        ((marks, rounds), handed)
    }

    /// Waits until all threads are ready. Returns the time at which the last one came.
    fn together<L>(&self, shared: &Shared<L>) -> u64 {
        let all = self.places.len() as u64;
        // Release and Acquire: a thread that sees that all are ready also sees when the last one
        // came.
        shared.begin.0.fetch_max(ticks(), Relaxed);
        shared.ready.0.fetch_add(1, Release);
        while shared.ready.0.load(Acquire) < all {
            // If threads share a CPU, the missing thread needs it.
            std::thread::yield_now();
        }
        shared.begin.0.load(Relaxed)
    }

    fn measured(&self, begin: u64, marks: &[Vec<Mark>], handed: Vec<f64>) -> Option<Measured> {
        let watch = self.rates.watch;
        let from = begin + watch.of_ns(self.warm_up_ns());
        let to = from + watch.of_ns(self.ns);
        let rounds: f64 = marks.iter().map(|marks| between(marks, from, to).0).sum();
        let switches: f64 = marks.iter().map(|marks| switches(marks, from, to)).sum();
        let window = watch.of_ns(if self.crowded { self.ns } else { WINDOW_NS });
        let windows = (to - from) / window;
        let rate = |number: u64| {
            let from = from + number * window;
            let of = |marks: &Vec<Mark>| between(marks, from, from + window);
            let each: Vec<_> = marks.iter().map(of).collect();
            let disturbed = !self.crowded && each.iter().any(|&(_, disturbed)| disturbed);
            let rounds: f64 = each.iter().map(|&(rounds, _)| rounds).sum();
            (!disturbed).then(|| rounds * 1e9 / watch.ns(0, window))
        };
        let rates: Vec<_> = (0..windows).map(rate).collect();
        let rounds_per_s = match rates.as_slice() {
            // Threads that outnumber CPUs are disturbed all the time, so the whole run is one
            // window.
            &[Some(rate)] if self.crowded => {
                Figure { median: rate, p25: rate, p75: rate, windows: 1, dropped: 0 }
            }
            rates => Figure::of(rates)?,
        };
        Some(Measured {
            rounds_per_s,
            hand_over_ns: antiphon_report::stats::median(handed).unwrap_or(0.0),
            switches_per_1000: if rounds > 0.0 { switches * 1e3 / rounds } else { 0.0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::{EMPTY, LOCKS, SHORT, visit};
    use super::*;

    /// A lock that excludes no thread.
    struct Open;

    // SAFETY: the contract is broken on purpose. The lock guards only counters here, which are read
    // by one thread after the other has ended.
    unsafe impl Lock for Open {
        const NEW: Self = Self;
        fn lock(&self) {}
        fn try_lock(&self) -> bool {
            true
        }
        unsafe fn unlock(&self) {}
    }

    fn run<'a>(places: &'a [usize], case: Case, crowded: bool) -> Run<'a> {
        let Ok(rates) = Rates::measure(places, case) else { panic!("CPUs can be used") };
        Run { rates, places, case, ns: 2e7, crowded }
    }

    #[test]
    fn each_lock_runs_and_counts_what_it_did() {
        let place = crate::pinned::usable()[0];
        for &name in LOCKS {
            let measured = visit::<Linux, _>(name, run(&[place, place], SHORT, true));
            let Some(Ok(Some(measured))) = measured else { panic!("{name} has no figure") };
            assert!(measured.rounds_per_s.median > 0.0, "{name}");
        }
        assert!(visit::<Linux, _>("no such lock", run(&[place], EMPTY, false)).is_none());
    }

    #[test]
    fn a_lock_that_keeps_nobody_out_is_found_out() {
        let places = crate::pinned::usable();
        let places = [places[0], places[places.len() - 1]];
        // Two threads on one CPU may not overlap for a while.
        let found = (0..50).any(|_| run(&places, SHORT, false).visit::<Open>().is_err());
        assert!(found);
    }
}
