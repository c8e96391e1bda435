//! The work of both worlds: threads that take one lock, written once.
//!
//! ```text
//!   ┌─► lock ─► write the lines, one word in each ─► work ─► unlock ─► work elsewhere ─┐
//!   └──────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Work begins with what the lines hold and what the work before it came to: a CPU can't begin it
//! earlier, and what it does takes as long as is said. Work elsewhere takes a time drawn by lot, up
//! to a bound.

use antiphon_platform::{Clock, Clocks as _, Platform};
use antiphon_sync::lock::{Lock, ShflMutex, ShflSpin};

use antiphon_report::stats::Random;

/// A world in which threads run.
pub trait Stage {
    /// The platform that their locks run on.
    type P: Platform;

    /// Counts a round of the calling thread; `false` if there is none after it. Called before the
    /// first one too.
    fn goes_on(&mut self) -> bool;

    /// Adds to a word in each of the first `count` lines, and returns one of the sums. The caller
    /// has the lock that they belong to.
    fn write(&self, lines: &Lines, count: usize) -> u64;

    /// Computes for `ns`, beginning with `start`. Returns what it came to.
    fn work(&self, ns: u32, start: u64) -> u64;
}

/// The most lines of a critical section.
pub const LINES: usize = 4;

/// The lines that the lock guards.
#[repr(align(128))]
#[derive(Default)]
pub struct Lines(pub [Line; LINES]);

/// One line of a cache.
#[repr(align(64))]
#[derive(Default)]
pub struct Line {
    /// The word that is added to.
    pub word: std::cell::Cell<u64>,
    /// The time when the lock was given back, and by which thread; in the first line only.
    pub given: std::cell::Cell<(u64, usize)>,
}

/// How large the critical section is, and what is between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name in reports.
    pub name: &'static str,
    /// Lines that the critical section writes.
    pub lines: usize,
    /// How long it works then, in nanoseconds.
    pub section_ns: u32,
    /// The most that a thread works elsewhere, in nanoseconds.
    pub away_ns: u32,
}

/// Nothing but the lock.
pub const EMPTY: Case = Case { name: "0ns", lines: 0, section_ns: 0, away_ns: 0 };
/// A short critical section.
pub const SHORT: Case = Case { name: "50ns-2lines", lines: 2, section_ns: 50, away_ns: 100 };
/// A longer one.
pub const LONGER: Case = Case { name: "200ns-4lines", lines: 4, section_ns: 200, away_ns: 400 };
/// All of them.
pub const CASES: [Case; 3] = [EMPTY, SHORT, LONGER];

/// One thread, from its first round to its last. `number` is its own among them.
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

/// As [`contend`], and notes how long the lock is on its way from one thread to another: from the
/// last owner's reading of the clock to that of the next owner. `handed` is called with
/// nanoseconds. The readings cost what they cost, in either world.
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

/// The work that was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// How often.
    pub calls: u64,
    /// The work of all calls, in nanoseconds.
    pub ns: u64,
}

/// The work of some rounds of [`contend`], without the lock and the lines.
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

/// Something to be done with a lock whose name is known only when the program runs.
pub trait Visitor {
    /// The result of a visit.
    type Output;

    /// Does it.
    fn visit<L: Lock>(self) -> Self::Output;
}

/// The locks that are compared, by their names: any of the registry, and ours.
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

/// Calls `visitor` with the lock of that name on `P`. `None` if there is none.
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

/// The same for a family of the registry. Gives the visitor back if there is no lock of that name.
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
