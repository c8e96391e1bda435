//! Condition variables as several rules need them: one with its waits and its notifications.

use std::collections::BTreeMap;

use super::Evidence;
use super::evidence::ratio;
use super::gil;
use crate::run::summary::{CONDITION, LockRow};

/// The rows of a condition variable.
#[derive(Default)]
pub struct Condition<'a> {
    /// Where threads wait; `gave_up` counts waits that ended at their deadline.
    pub waits: Vec<&'a LockRow>,
    /// Where threads notify; `gave_up` counts notifications that found no waiter.
    pub notifications: Vec<&'a LockRow>,
}

/// The condition variables of the report, except those of an interpreter.
pub fn all<'a>(evidence: &Evidence<'a>) -> Vec<Condition<'a>> {
    let mut conditions: BTreeMap<(u32, u64), Condition<'_>> = BTreeMap::new();
    let rows = evidence.report.locks.iter().filter(|row| row.kind == CONDITION);
    for row in rows.filter(|row| !gil::is_of_interpreter(row)) {
        let condition = conditions.entry((row.pid, row.address)).or_default();
        if row.contended > 0 {
            condition.waits.push(row);
        } else {
            condition.notifications.push(row);
        }
    }
    conditions.into_values().collect()
}

impl Condition<'_> {
    /// Number of waits.
    pub fn waited(&self) -> u64 {
        sum(&self.waits, |row| row.contended)
    }

    /// Number of waits that ended at their deadline.
    pub fn expired(&self) -> u64 {
        sum(&self.waits, |row| row.gave_up)
    }

    /// Number of waits that had not ended at the end of the run.
    pub fn still_waiting(&self) -> u64 {
        sum(&self.waits, |row| row.still_waiting)
    }

    /// Total time of the waits, in nanoseconds.
    pub fn wait_ns(&self) -> u64 {
        sum(&self.waits, |row| row.wait.sum_ns)
    }

    /// Number of notifications.
    pub fn notified(&self) -> u64 {
        sum(&self.notifications, |row| row.acquisitions)
    }

    /// Number of notifications that found no waiter.
    pub fn in_vain(&self) -> u64 {
        sum(&self.notifications, |row| row.gave_up)
    }

    /// The call site where threads waited longest.
    pub fn waited_at(&self) -> String {
        site(&self.waits, |row| row.wait.sum_ns)
    }

    /// The call site with the most notifications.
    pub fn notified_at(&self) -> String {
        site(&self.notifications, |row| row.acquisitions)
    }

    /// The mean length of a wait, in seconds.
    pub fn mean_s(&self) -> f64 {
        ratio(self.wait_ns() as f64 / 1e9, self.waited() as f64)
    }
}

fn sum(rows: &[&LockRow], of: impl Fn(&LockRow) -> u64) -> u64 {
    rows.iter().map(|row| of(row)).sum()
}

fn site(rows: &[&LockRow], of: impl Fn(&LockRow) -> u64) -> String {
    let most = rows.iter().max_by_key(|row| of(row));
    most.map_or_else(String::new, |row| row.site.label())
}
