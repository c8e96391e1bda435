//! The workload of both worlds, written once: threads that use one lock.
//!
//! ```text
//!   ┌─► lock ─► write the lines, one word in each ─► work ─► unlock ─► work elsewhere ─┐
//!   └──────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Work begins with the contents of the lines and the result of the previous work, so that a CPU
//! can't begin it earlier, and it takes the given time. Work elsewhere takes a random time up to a
//! bound.

use antiphon_platform::{Clock, Clocks as _, Platform};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};

use antiphon_report::stats::Random;

/// A world in which threads run.
pub trait Stage {
    /// The platform of their locks.
    type P: Platform;

    /// Counts a round of the calling thread. Returns `false` if there is no further round. Also
    /// called before the first one.
    fn goes_on(&mut self) -> bool;

    /// Adds to a word in each of the first `count` lines, and returns one of the sums. The caller
    /// must hold the lock that guards them.
    fn write(&self, lines: &Lines, count: usize) -> u64;

    /// Computes for `ns`, beginning with `start`. Returns the result.
    fn work(&self, ns: u32, start: u64) -> u64;
}

/// Maximal number of lines of a critical section.
pub const LINES: usize = 4;

/// The lines that the lock guards.
#[repr(align(128))]
#[derive(Default)]
pub struct Lines(pub [Line; LINES]);

/// A cache line.
#[repr(align(64))]
#[derive(Default)]
pub struct Line {
    /// The word that is added to.
    pub word: std::cell::Cell<u64>,
    /// Time at which the lock was released, and the thread that did so; in the first line only.
    pub given: std::cell::Cell<(u64, usize)>,
}

/// The size of the critical section, and of the work between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name in reports.
    pub name: &'static str,
    /// Number of lines that the critical section writes.
    pub lines: usize,
    /// Time for which it then computes, in nanoseconds.
    pub section_ns: u32,
    /// Maximal time that a thread works elsewhere, in nanoseconds.
    pub away_ns: u32,
}

/// Only the lock.
pub const EMPTY: Case = Case { name: "0ns", lines: 0, section_ns: 0, away_ns: 0 };
/// A short critical section.
pub const SHORT: Case = Case { name: "50ns-2lines", lines: 2, section_ns: 50, away_ns: 100 };
/// A longer critical section.
pub const LONGER: Case = Case { name: "200ns-4lines", lines: 4, section_ns: 200, away_ns: 400 };
/// All cases.
pub const CASES: [Case; 3] = [EMPTY, SHORT, LONGER];

/// Runs one thread from its first round to its last. `number` identifies it among the threads.
pub fn contend<S: Stage, L: Lock>(
    stage: &mut S,
    lock: &L,
    lines: &Lines,
    case: Case,
    number: usize,
) {
    let (mut random, mut value) = (lot(number), 0);
    while stage.goes_on() {
        lock.lock();
        value ^= stage.write(lines, case.lines);
        value = stage.work(case.section_ns, value);
        // SAFETY: locked by this thread above.
        unsafe { lock.unlock() };
        value = stage.work(elsewhere(&mut random, case), value);
    }
}

/// Like [`contend`], and measures how long the lock takes from one thread to another: from the last
/// owner's reading of the clock to the next owner's. `handed` is called with nanoseconds. The
/// readings have their usual cost in either world.
pub fn hand_over<S: Stage, L: Lock>(
    stage: &mut S,
    lock: &L,
    lines: &Lines,
    (case, number): (Case, usize),
    mut handed: impl FnMut(u64),
) {
    let (mut random, mut value) = (lot(number), 0);
    while stage.goes_on() {
        lock.lock();
        let now = S::P::now(Clock::Monotonic);
        let (given, by) = lines.0[0].given.get();
        value ^= stage.write(lines, case.lines);
        value = stage.work(case.section_ns, value);
        lines.0[0].given.set((S::P::now(Clock::Monotonic), number));
        // SAFETY: locked by this thread above.
        unsafe { lock.unlock() };
        if given != 0 && by != number {
            handed(now.saturating_sub(given));
        }
        value = stage.work(elsewhere(&mut random, case), value);
    }
}

/// The work that was requested.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Number of calls.
    pub calls: u64,
    /// Total work of all calls, in nanoseconds.
    pub ns: u64,
}

/// Runs the work of some rounds of [`contend`], without the lock and the lines.
pub fn alone(case: Case, mut work: impl FnMut(u32)) -> Asked {
    const ROUNDS: usize = 200;
    let (mut random, mut asked) = (lot(0), Asked::default());
    for _ in 0..ROUNDS {
        for ns in [case.section_ns, elsewhere(&mut random, case)] {
            work(ns);
            asked = Asked { calls: asked.calls + 1, ns: asked.ns + u64::from(ns) };
        }
    }
    asked
}

fn lot(number: usize) -> Random {
    Random(number as u64 + 1)
}

fn elsewhere(random: &mut Random, case: Case) -> u32 {
    if case.away_ns == 0 { 0 } else { (random.draw() % u64::from(case.away_ns + 1)) as u32 }
}

/// An operation on a lock whose name is known only at run time.
pub trait Visitor {
    /// The result of the operation.
    type Output;

    /// Runs the operation on lock `L`.
    fn visit<L: Lock>(self) -> Self::Output;
}

/// Names of the compared locks: any of the registry, and ours.
pub const LOCKS: &[&str] = &[
    "tas",
    "ttas",
    "ticket",
    "mcs",
    "clh",
    "futex",
    "cna",
    "hmcs",
    "cohort-tkt-mcs",
    "qspinlock",
    "linux-mutex",
    "cst-mutex",
    "shfl-spin",
    "shfl-mutex",
];

/// Calls `visitor` with the lock of this name on `P`. Returns `None` if there is none.
pub fn visit<P: Platform, V: Visitor>(name: &str, visitor: V) -> Option<V::Output> {
    let other = |visitor: V| match name {
        "shfl-spin" => Ok(visitor.visit::<ShflSpin<P>>()),
        "shfl-mutex" => Ok(visitor.visit::<ShflMutex<P>>()),
        _ => Err(visitor),
    };
    let found = classic::<P, V>(name, visitor)
        .or_else(|visitor| numa::<P, V>(name, visitor))
        .or_else(|visitor| cst::<P, V>(name, visitor))
        .or_else(|visitor| stock::<P, V>(name, visitor))
        .or_else(other);
    found.ok()
}

/// Like `visit`, for a family of the registry. Returns the visitor if there is no lock of this
/// name.
macro_rules! visit_family {
    (
        $family:ident:
        $($name:literal: $file:ident::$lock:ident, $bytes:literal $(, $more:tt)*;)+
    ) => {
        fn $family<P: Platform, V: Visitor>(name: &str, visitor: V) -> Result<V::Output, V> {
            match name {
                $($name => Ok(visitor.visit::<antiphon_rivals::$family::$lock<P>>()),)+
                _ => Err(visitor),
            }
        }
    };
}

antiphon_rivals::locks!(classic => visit_family);
antiphon_rivals::locks!(numa => visit_family);
antiphon_rivals::locks!(cst => visit_family);
antiphon_rivals::locks!(stock => visit_family);
