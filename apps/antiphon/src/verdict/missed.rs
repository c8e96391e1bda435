//! Waits for a condition that end at their deadline, although it was notified.
//!
//! **Threshold**: nine in ten waits for a condition variable, three or more and a fifth of the run,
//! ended at their deadline, and nine in ten of its notifications, three or more, found no waiter.
//! Only a profile knows, and only of Antiphon's private condition variables.
//!
//! **Reason**: a notification wakes threads that wait, and is lost otherwise. A thread that does
//! not look at the condition before it waits misses what was notified before, and sleeps until its
//! deadline.

use std::collections::BTreeMap;

use antiphon_report::table::{count, duration};

use super::evidence::ratio;
use super::{Evidence, Finding};
use crate::run::summary::{CONDITION, LockRow};

/// The least number of waits, and of notifications.
const LEAST: u64 = 3;
/// The least share of waits that ended at their deadline, and of notifications without a waiter.
const LEAST_SHARE: f64 = 0.9;
/// The least time of the waits, as a share of the run.
const LEAST_PART: f64 = 0.2;

/// The rows of a condition variable.
#[derive(Default)]
struct Condition<'a> {
    waits: Vec<&'a LockRow>,
    notifications: Vec<&'a LockRow>,
}

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut conditions: BTreeMap<(u32, u64), Condition<'_>> = BTreeMap::new();
    for row in evidence.report.locks.iter().filter(|row| row.kind == CONDITION) {
        let condition = conditions.entry((row.pid, row.address)).or_default();
        // Where threads wait, `gave_up` counts deadlines; where they notify, missing waiters.
        let rows =
            if row.contended > 0 { &mut condition.waits } else { &mut condition.notifications };
        rows.push(row);
    }
    let missed = conditions.into_values().filter(|condition| condition.is_missed(evidence.wall_s));
    let Some(missed) = missed.max_by_key(Condition::wait_ns) else { return Vec::new() };
    let (waits, notifications) = (&missed.waits, &missed.notifications);
    let says = format!(
        "{} of {} waits at {} ended at their deadline, after {} in all; {} of {} notifications at \
         {} found no waiter.",
        count(sum(waits, |row| row.gave_up)),
        count(sum(waits, |row| row.contended)),
        waits[0].site.label(),
        duration(missed.wait_ns() as f64),
        count(sum(notifications, |row| row.gave_up)),
        count(sum(notifications, |row| row.acquisitions)),
        notifications[0].site.label(),
    );
    let advice = "A notification that comes before the wait is lost: look at the condition, under \
                  the mutex, before each wait (a loop, or wait with a predicate).";
    let weight = ratio(missed.wait_ns() as f64 / 1e9, evidence.wall_s).min(1.0);
    vec![Finding { rule: "missed-wake-ups", says, advice: advice.to_owned(), weight }]
}

fn sum(rows: &[&LockRow], of: impl Fn(&LockRow) -> u64) -> u64 {
    rows.iter().map(|row| of(row)).sum()
}

impl Condition<'_> {
    fn wait_ns(&self) -> u64 {
        sum(&self.waits, |row| row.wait.sum_ns)
    }

    fn is_missed(&self, wall_s: f64) -> bool {
        let most =
            |part: u64, all: u64| part >= LEAST && ratio(part as f64, all as f64) >= LEAST_SHARE;
        let all = |rows: &[&LockRow], of: fn(&LockRow) -> u64| sum(rows, of);
        most(all(&self.waits, |row| row.gave_up), all(&self.waits, |row| row.contended))
            && most(
                all(&self.notifications, |row| row.gave_up),
                all(&self.notifications, |row| row.acquisitions),
            )
            && ratio(self.wait_ns() as f64 / 1e9, wall_s) >= LEAST_PART
    }
}
