//! What the rules read: the report, and figures computed from it that several rules need.
//!
//! *Working time* is the time in which threads had something to do: on a CPU, ready without one, or
//! waiting for a lock. Waits for conditions, semaphores, I/O, threads and timers are not included:
//! a thread that waits for work has nothing to do. A thread that spins for a lock is counted twice,
//! on its CPU and as a waiter; that is little, because waiters sleep after some microseconds.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_record::Histogram;
use antiphon_report::words::noun as noun_of;

use super::percent;
use crate::run::home::Home;
use crate::run::summary::{LockRow, READ, Report};
use crate::symbols::{CallSite, short};

/// The least share of the CPU time that the sections of a lock take if they are the program's
/// limit: no more than three CPUs can be busy.
pub const LEAST_SECTIONS: f64 = 1.0 / 3.0;

/// The facts about a run.
pub struct Evidence<'a> {
    /// The report.
    pub report: &'a Report,
    /// Locks by class, the longest waited for first. Condition variables are not included.
    pub classes: Vec<Class<'a>>,
    /// Length of the run, in seconds.
    pub wall_s: f64,
    /// CPUs that the program may use.
    pub cpus: f64,
    /// Working time, in seconds of all threads.
    pub working_s: f64,
    /// Time of all threads together, in seconds, as if each had lived for the whole run.
    pub threads_s: f64,
}

/// Locks that were initialised by the same call, or are taken at the same call sites.
pub struct Class<'a> {
    /// The noun for the class: `mutex`, `readers-writer lock`, `spinlock`.
    pub noun: &'static str,
    /// The rows of these locks in the report.
    pub rows: Vec<&'a LockRow>,
    /// Number of locks.
    pub locks: usize,
    /// Histogram of the waits for these locks.
    pub wait: Histogram,
    /// Histogram of the holds; empty without a profile.
    pub hold: Histogram,
    /// Number of acquisitions; without a profile, of those that had to wait.
    pub acquisitions: u64,
    /// Time that threads which still waited at the end had waited, in nanoseconds.
    stuck_ns: u64,
}

impl<'a> Evidence<'a> {
    /// Computes the figures of a report.
    pub fn new(report: &'a Report) -> Self {
        let blocked = &report.blocked;
        let waits = blocked.mutex + blocked.rwlock + blocked.spin;
        let wall_s = report.run.wall.as_secs_f64();
        Self {
            report,
            classes: classes(report),
            wall_s,
            cpus: report.run.cpus as f64,
            working_s: report.run.cpu_s + blocked.run_queue + waits,
            threads_s: wall_s * report.threads as f64,
        }
    }

    /// The classes whose share of the working time is at least `least`, each with its share.
    /// Classes of stuck threads are left out.
    pub fn waited_for(&self, least: f64) -> impl Iterator<Item = (f64, &Class<'a>)> {
        let classes = self.classes.iter().filter(|class| !class.is_stuck());
        classes.map(|class| (self.share(class), class)).filter(move |(share, _)| *share >= least)
    }

    /// The share of the working time that was spent waiting for these locks.
    pub fn share(&self, class: &Class<'_>) -> f64 {
        ratio(class.wait.sum_ns as f64 / 1e9, self.working_s).min(1.0)
    }

    /// The share of the run in which such a lock was held exclusively, on average over these locks:
    /// holds of readers overlap. `None` if that is not known: without a profile, of spinlocks, and
    /// if a hold did not end.
    pub fn held(&self, class: &Class<'_>) -> Option<f64> {
        let alone = class.rows.iter().filter(|row| row.kind != READ);
        let ns: u64 = alone.map(|row| row.hold.sum_ns).sum();
        let ns = ns as f64 / class.locks.max(1) as f64;
        let is_known = self.report.run.profile && !class.hold.is_empty() && class.stuck_ns == 0;
        is_known.then(|| ratio(ns / 1e9, self.wall_s))
    }
}

impl Evidence<'_> {
    /// The share of the program's CPU time that the exclusive sections of such a lock take, on
    /// average over these locks: each section counts with the median of its call site, so that
    /// sections whose owner lost its CPU do not matter. More than 1 if owners sleep. `None` if the
    /// holds are not known.
    pub fn sections(&self, class: &Class<'_>) -> Option<f64> {
        let alone = class.rows.iter().filter(|row| row.kind != READ);
        let ns: f64 =
            alone.map(|row| row.hold.p50().unwrap_or(0) as f64 * row.hold.count() as f64).sum();
        let s = ns / 1e9 / class.locks.max(1) as f64;
        self.held(class).map(|_| ratio(s, self.report.run.cpu_s))
    }

    /// Whether the program depends on such a lock, however its waits are distributed: its sections
    /// take a third of the CPU time, so that no more than three CPUs can ever be busy, or it is
    /// taken once in 0.4 µs of CPU time. Where threads outnumber CPUs, few waits for such a
    /// lock are long: those for owners that have lost their CPU.
    pub fn depends_on(&self, class: &Class<'_>) -> bool {
        const LONGEST_BETWEEN_S: f64 = 4e-7;
        self.sections(class).is_some_and(|share| share >= LEAST_SECTIONS)
            || self.between_s(class).is_some_and(|time| time <= LONGEST_BETWEEN_S)
    }

    /// The CPU time of the program for each acquisition of such a lock, in seconds. `None` without
    /// a profile.
    pub fn between_s(&self, class: &Class<'_>) -> Option<f64> {
        let each = class.acquisitions as f64 / class.locks.max(1) as f64;
        (self.report.run.profile && class.acquisitions > 0)
            .then(|| ratio(self.report.run.cpu_s, each))
    }

    /// The call site at which such a lock is held for long each time, if waits for it are rare and
    /// long: they are for that section, whose owner did not just lose its CPU.
    pub fn long_section<'a>(&self, class: &Class<'a>) -> Option<&'a LockRow> {
        /// The least number of holds, and their least median in nanoseconds.
        const LEAST: u64 = 3;
        const LEAST_NS: u64 = 1_000_000;
        /// The time of these holds is at least one of this many parts of the long waits.
        const PARTS: u64 = 10;
        let (_, waits_ns) = class.rare_long_waits().filter(|_| self.report.run.profile)?;
        let long = class.rows.iter().copied().filter(|row| {
            row.hold.count() >= LEAST
                && row.hold.p50().is_some_and(|ns| ns >= LEAST_NS)
                && row.hold.sum_ns >= waits_ns / PARTS
        });
        long.max_by_key(|row| row.hold.sum_ns)
    }

    /// The number of rare and long waits of the class and their time, if they are most of its
    /// waiting and not those for a lock on which the program depends. `None` without a profile.
    pub fn rare_long_waits(&self, class: &Class<'_>) -> Option<(u64, u64)> {
        let rare = class.rare_long_waits().filter(|_| !self.depends_on(class));
        rare.filter(|_| self.report.run.profile)
    }
}

impl<'a> Class<'a> {
    /// The class of one lock, from its rows.
    fn of(noun: &'static str, rows: Vec<&'a LockRow>) -> Self {
        let (mut wait, mut hold) = (Histogram::default(), Histogram::default());
        for row in &rows {
            wait.add(&row.wait);
            hold.add(&row.hold);
        }
        let acquisitions = rows.iter().map(|row| row.acquisitions).sum();
        Self { noun, rows, locks: 1, wait, hold, acquisitions, stuck_ns: 0 }
    }

    /// Both classes together.
    fn with(mut self, other: Self) -> Self {
        self.rows.extend(other.rows);
        self.locks += other.locks;
        self.wait.add(&other.wait);
        self.hold.add(&other.hold);
        self.acquisitions += other.acquisitions;
        self.stuck_ns += other.stuck_ns;
        self
    }

    /// The call site where threads waited longest.
    pub fn waited_at(&self) -> &CallSite {
        static NOWHERE: CallSite = CallSite::NOWHERE;
        let most = self.rows.iter().max_by_key(|row| row.wait.sum_ns);
        most.map_or(&NOWHERE, |row| &row.site)
    }

    /// The row after whose call the lock was held longest in all.
    pub fn longest_held(&self) -> Option<&'a LockRow> {
        self.rows.iter().copied().max_by_key(|row| row.hold.sum_ns)
    }

    /// The share of the longest hold in the time of all holds.
    pub fn longest_hold(&self) -> f64 {
        ratio(self.hold.max_ns as f64, self.hold.sum_ns as f64)
    }

    /// Whether a thread waits for such a lock to the end of the run.
    pub fn has_stuck(&self) -> bool {
        self.stuck_ns > 0
    }

    /// Whether most of the waiting is in waits that never ended: it then shows that a thread is
    /// stuck, and nothing about the cost of the lock.
    fn is_stuck(&self) -> bool {
        self.stuck_ns > self.wait.sum_ns / 2
    }

    /// The number of waits of a millisecond and more, and their time, if such waits are rare and
    /// yet most of the waiting: those for owners that had lost their CPU, or slept.
    fn rare_long_waits(&self) -> Option<(u64, u64)> {
        const LEAST_NS: u64 = 1_000_000;
        let (long, ns) = self.wait.at_least(LEAST_NS);
        (long > 0 && long < self.acquisitions / 100 && ns > self.wait.sum_ns / 2)
            .then_some((long, ns))
    }

    /// The locks in a sentence: `one mutex`, `the mutex log_lock`, `12 mutexes`.
    pub fn name(&self) -> String {
        let home = self.rows.first().map(|row| &row.home);
        if let (1, Some(variable)) = (self.locks, home.and_then(|home| home.variable())) {
            return format!("the {} {}", self.noun, short(variable, 40));
        }
        let made = home.and_then(Home::initialised);
        let made = made.filter(|made| self.rows.iter().all(|row| row.home.class() == *made));
        let made = made.map_or(String::new(), |made| format!(" {made}"));
        match self.locks {
            1 => format!("one {}{made}", self.noun),
            many => format!("{many} {}{made}", noun_of(many as u64, self.noun)),
        }
    }
}

/// A sentence that names further classes with the same finding; empty if there are none.
pub fn likewise(others: &[(f64, &Class<'_>)]) -> String {
    let Some((last, before)) = others.split_last() else { return String::new() };
    let one = |(share, class): &(f64, &Class<'_>)| {
        format!("{} at {} ({})", class.name(), class.waited_at().label(), percent(*share))
    };
    let before: Vec<_> = before.iter().map(one).collect();
    let and = if before.is_empty() { "" } else { " and " };
    format!(" So it is with {}{and}{}.", before.join(", "), one(last))
}

/// The share of a part in a whole; 0 if the whole is 0.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn noun(kind: &str) -> Option<&'static str> {
    match kind {
        "mutex" | "adaptive" | "recursive" | "errorcheck" | "foreign" => Some("mutex"),
        "rdlock" | "wrlock" => Some("readers-writer lock"),
        "spin" => Some("spinlock"),
        _ => None,
    }
}

/// The classes of the report's locks: first each lock by itself, then the locks together that were
/// initialised by the same call, or else are taken at the same sites.
///
/// A lock with more than half of the waiting of its class stays a class of its own: in the mean,
/// its finding would be lost.
fn classes(report: &Report) -> Vec<Class<'_>> {
    let mut locks: BTreeMap<(u32, u64, &'static str), Vec<&LockRow>> = BTreeMap::new();
    for row in report.locks.iter().filter(|row| row.address != 0) {
        if let Some(noun) = noun(row.kind) {
            locks.entry((row.pid, row.address, noun)).or_default().push(row);
        }
    }
    let mut groups: BTreeMap<(&str, BTreeSet<String>), Vec<Class<'_>>> = BTreeMap::new();
    for ((pid, address, noun), rows) in locks {
        let sites = match rows[0].home.initialised() {
            Some(made) => [made].into(),
            None => rows.iter().map(|row| row.site.label()).collect(),
        };
        let mut class = Class::of(noun, rows);
        let stuck = report.stuck.iter().filter(|it| (it.pid, it.address) == (pid, address));
        class.stuck_ns = stuck.map(|thread| thread.waited_ns).sum();
        groups.entry((noun, sites)).or_default().push(class);
    }
    let mut classes = Vec::new();
    for mut group in groups.into_values() {
        let all_ns: u64 = group.iter().map(|class| class.wait.sum_ns).sum();
        if let Some(hot) = group.iter().position(|class| class.wait.sum_ns > all_ns / 2) {
            classes.push(group.swap_remove(hot));
        }
        classes.extend(group.into_iter().reduce(Class::with));
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.wait.sum_ns));
    classes
}
