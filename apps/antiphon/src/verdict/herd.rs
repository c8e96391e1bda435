//! Notifications that wake many threads each.
//!
//! **Threshold**: four waits or more ended for each notification of a condition variable with a
//! thousand waits or more. Only a profile knows.
//!
//! **Reason**: a broadcast wakes all waiters. If one of them finds what it waits for, the others
//! were woken only to wait again, and each takes the mutex for that.

use antiphon_report::table::count;

use super::condition::{self, Condition};
use super::evidence::ratio;
use super::{Evidence, Finding};

/// The least number of waits.
const LEAST: u64 = 1000;
/// The least number of waits that end for each notification.
const LEAST_EACH: f64 = 4.0;
/// Small, because the waits for the condition's mutex have their own finding.
const WEIGHT: f64 = 0.15;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let herd = condition::all(evidence).into_iter().find(is_herd);
    let Some(herd) = herd else { return Vec::new() };
    let says = format!(
        "{} notifications at {} woke threads {} times, {:.0} for each.",
        count(herd.notified()),
        herd.notified_at(),
        count(woken(&herd)),
        each(&herd),
    );
    let advice = "If one thread can go on for each, signal instead of broadcasting, or give each \
                  kind of waiter its own condition variable.";
    vec![Finding { rule: "herd", says, advice: advice.to_owned(), weight: WEIGHT }]
}

/// Returns whether each notification wakes many threads.
pub fn is_herd(condition: &Condition<'_>) -> bool {
    condition.notified() > 0 && woken(condition) >= LEAST && each(condition) >= LEAST_EACH
}

fn woken(condition: &Condition<'_>) -> u64 {
    condition.waited().saturating_sub(condition.expired())
}

fn each(condition: &Condition<'_>) -> f64 {
    ratio(woken(condition) as f64, condition.notified() as f64)
}
