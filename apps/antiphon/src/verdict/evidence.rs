//! What rules look at: the report, and what several of them need to be computed from it.
//!
//! *Working time* is the time in which threads had something to do: on a CPU, ready without one, or
//! waiting for a lock. Waits for conditions, semaphores, I/O, threads and timers are not in it: a
//! thread that waits for work has none. A thread that spins for a lock is counted twice, on its CPU
//! and as a waiter; that is little, because waiters sleep after some microseconds.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_record::Histogram;
use antiphon_report::words::noun as noun_of;

use super::percent;
use crate::run::summary::{LockRow, Report};
use crate::symbols::{CallSite, short};

/// The facts about a run.
pub struct Evidence<'a> {
    /// The report.
    pub report: &'a Report,
    /// Locks by class, the one that was waited for longest first. No condition variables.
    pub classes: Vec<Class<'a>>,
    /// Length of the run, in seconds.
    pub wall_s: f64,
    /// CPUs that the program may use.
    pub cpus: f64,
    /// Working time, in seconds of all threads.
    pub working_s: f64,
    /// Time of all threads together, in seconds: as if each had lived for the whole run.
    pub threads_s: f64,
}

/// Locks that are taken at the same call sites.
pub struct Class<'a> {
    /// What they are called: `mutex`, `readers-writer lock`, `spinlock`.
    pub noun: &'static str,
    /// Their rows.
    pub rows: Vec<&'a LockRow>,
    /// How many locks.
    pub locks: usize,
    /// How long they were waited for.
    pub wait: Histogram,
    /// How long they were held; empty without a profile.
    pub hold: Histogram,
    /// How often they were taken; without a profile, after a wait.
    pub acquisitions: u64,
}

impl<'a> Evidence<'a> {
    /// What a report says.
    pub fn new(report: &'a Report) -> Self {
        let blocked = &report.blocked;
        let waits = blocked.mutex + blocked.rwlock + blocked.spin;
        let wall_s = report.run.wall.as_secs_f64();
        Self {
            report,
            classes: classes(&report.locks),
            wall_s,
            cpus: report.run.cpus as f64,
            working_s: report.run.cpu_s + blocked.run_queue + waits,
            threads_s: wall_s * report.threads as f64,
        }
    }

    /// Classes with at least that share of the working time, each with its share.
    pub fn waited_for(&self, least: f64) -> impl Iterator<Item = (f64, &Class<'a>)> {
        let classes = self.classes.iter().filter(|class| !class.is_stuck());
        classes.map(|class| (self.share(class), class)).filter(move |(share, _)| *share >= least)
    }

    /// The share of the working time that was spent waiting for these locks.
    pub fn share(&self, class: &Class<'_>) -> f64 {
        ratio(class.wait.sum_ns as f64 / 1e9, self.working_s).min(1.0)
    }

    /// The share of the run in which such a lock was held, on average over them; `None` without a
    /// profile. Readers hold at once: theirs may be more than all of it.
    pub fn held(&self, class: &Class<'_>) -> Option<f64> {
        let ns = class.hold.sum_ns as f64 / class.locks.max(1) as f64;
        self.report.run.profile.then(|| ratio(ns / 1e9, self.wall_s))
    }
}

impl Class<'_> {
    /// The call site where threads waited longest.
    pub fn waited_at(&self) -> &CallSite {
        self.most(|row| row.wait.sum_ns)
    }

    /// The call site after which the lock was held longest in all.
    pub fn held_at(&self) -> &CallSite {
        self.most(|row| row.hold.sum_ns)
    }

    fn most(&self, of: impl Fn(&LockRow) -> u64) -> &CallSite {
        static NOWHERE: CallSite = CallSite::NOWHERE;
        self.rows.iter().max_by_key(|row| of(row)).map_or(&NOWHERE, |row| &row.site)
    }

    /// Whether most of the waiting is in waits that never ended: then it says that a thread is
    /// stuck, and nothing about what the lock costs.
    fn is_stuck(&self) -> bool {
        let open = self.rows.iter().filter(|row| row.still_waiting > 0);
        let longest: u64 = open.map(|row| row.wait.max_ns).sum();
        longest > self.wait.sum_ns / 2
    }

    /// The locks in a sentence: `one mutex`, `the mutex log_lock`, `12 mutexes`.
    pub fn name(&self) -> String {
        let variable = self.rows.first().and_then(|row| row.variable.as_deref());
        match (self.locks, variable) {
            (1, Some(variable)) => format!("the {} {}", self.noun, short(variable, 40)),
            (1, None) => format!("one {}", self.noun),
            (many, _) => format!("{many} {}", noun_of(many as u64, self.noun)),
        }
    }
}

/// A sentence on further classes of which the same is to be said; empty if there are none.
pub fn likewise(others: &[(f64, &Class<'_>)]) -> String {
    let Some((last, before)) = others.split_last() else { return String::new() };
    let one = |(share, class): &(f64, &Class<'_>)| {
        format!("{} at {} ({})", class.name(), class.waited_at().label(), percent(*share))
    };
    let before: Vec<_> = before.iter().map(one).collect();
    let and = if before.is_empty() { "" } else { " and " };
    format!(" So it is with {}{and}{}.", before.join(", "), one(last))
}

/// A part of a whole; nothing of nothing is nothing.
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

/// The locks of these rows: first each by itself, then those that are taken at the same sites
/// together.
fn classes(rows: &[LockRow]) -> Vec<Class<'_>> {
    let mut locks: BTreeMap<(u32, u64, &'static str), Vec<&LockRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.address != 0) {
        if let Some(noun) = noun(row.kind) {
            locks.entry((row.pid, row.address, noun)).or_default().push(row);
        }
    }
    let mut classes: BTreeMap<(&str, BTreeSet<String>), Class<'_>> = BTreeMap::new();
    for ((_, _, noun), rows) in locks {
        let sites = rows.iter().map(|row| row.site.label()).collect();
        let class = classes.entry((noun, sites)).or_insert_with(|| Class {
            noun,
            rows: Vec::new(),
            locks: 0,
            wait: Histogram::default(),
            hold: Histogram::default(),
            acquisitions: 0,
        });
        class.locks += 1;
        for row in rows {
            class.wait.add(&row.wait);
            class.hold.add(&row.hold);
            class.acquisitions += row.acquisitions;
            class.rows.push(row);
        }
    }
    let mut classes: Vec<_> = classes.into_values().collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.wait.sum_ns));
    classes
}
