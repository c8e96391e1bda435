//! Notifications that wake many threads each.
//!
//! **Threshold**: four waits or more ended for each notification of a condition variable with a
//! thousand waits or more. Only a profile knows.
//!
//! **Reason**: a broadcast wakes all waiters. If one of them finds what it waits for, the others
//! were woken only to wait again, and each takes the mutex for that.

use std::collections::BTreeMap;

use antiphon_report::table::count;

use super::{Evidence, Finding};
use crate::run::summary::{CONDITION, LockRow};

/// The least number of waits.
const LEAST: u64 = 1000;
/// The least number of waits that end for each notification.
const LEAST_EACH: f64 = 4.0;
/// Small, because the waits for the condition's mutex have their own finding.
const WEIGHT: f64 = 0.15;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut conditions: BTreeMap<(u32, u64), Vec<&LockRow>> = BTreeMap::new();
    for row in evidence.report.locks.iter().filter(|row| row.kind == CONDITION) {
        conditions.entry((row.pid, row.address)).or_default().push(row);
    }
    let finding = |rows: Vec<&LockRow>| {
        // Where threads wait, a row counts waits, and elsewhere notifications.
        let (waits, notified): (Vec<_>, Vec<_>) = rows.into_iter().partition(|it| it.contended > 0);
        let woken: u64 =
            waits.iter().map(|row| row.contended - row.gave_up.min(row.contended)).sum();
        let notifications: u64 = notified.iter().map(|row| row.acquisitions).sum();
        let site = &notified.iter().max_by_key(|row| row.acquisitions)?.site;
        let each = woken as f64 / notifications.max(1) as f64;
        (woken >= LEAST && each >= LEAST_EACH).then(|| Finding {
            rule: "herd",
            says: format!(
                "{} notifications at {} woke threads {} times, {each:.0} for each.",
                count(notifications),
                site.label(),
                count(woken),
            ),
            advice:
                "If one thread can go on for each, signal instead of broadcasting, or give each \
                     kind of waiter its own condition variable."
                    .to_owned(),
            weight: WEIGHT,
        })
    };
    conditions.into_values().filter_map(finding).take(1).collect()
}
