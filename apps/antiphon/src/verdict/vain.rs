//! Notifications that find no waiter.
//!
//! **Threshold**: nine in ten notifications of a condition variable with a thousand or more found
//! no waiter. Only a profile knows, and only of Antiphon's private condition variables.
//!
//! **Reason**: a notification is cheap where no thread waits, but a program that notifies each time
//! often does so under a lock, and does the same where threads do wait: there each notification
//! wakes a thread for a single item, or many threads for nothing.

use std::collections::BTreeMap;

use antiphon_report::table::count;

use super::evidence::ratio;
use super::{Evidence, Finding, gil, percent};
use crate::run::summary::CONDITION;

/// The least number of notifications.
const LEAST: u64 = 1000;
/// The least share of notifications that found no waiter.
const LEAST_SHARE: f64 = 0.9;
/// Small, because such notifications cost little: findings about time come first.
const WEIGHT: f64 = 0.03;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut sites: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let conditions = evidence.report.locks.iter().filter(|row| row.kind == CONDITION);
    for row in conditions.filter(|row| !gil::is_of_interpreter(row)) {
        // Where threads wait, `gave_up` counts their timeouts.
        if row.contended == 0 {
            let site = sites.entry(row.site.label()).or_default();
            site.0 += row.acquisitions;
            site.1 += row.gave_up;
        }
    }
    let in_vain = |(_, (all, vain)): &(String, (u64, u64))| {
        *all >= LEAST && ratio(*vain as f64, *all as f64) >= LEAST_SHARE
    };
    let most = sites.into_iter().filter(in_vain).max_by_key(|(_, (_, vain))| *vain);
    let finding = |(site, (all, vain)): (String, (u64, u64))| Finding {
        rule: "vain-wake-ups",
        says: format!(
            "{} of {} notifications at {site} found no waiter.",
            percent(vain as f64 / all as f64),
            count(all),
        ),
        advice: "Notify where that may let a thread go on (the queue was empty), and after the \
                 lock is released."
            .to_owned(),
        weight: WEIGHT,
    };
    most.map(finding).into_iter().collect()
}
