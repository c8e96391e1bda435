//! Waits for a condition that end at their deadline, although it was notified.
//!
//! **Threshold**: nine in ten waits for a condition variable, three or more and a fifth of the run,
//! ended at their deadline, and nine in ten of its notifications, three or more, found no waiter.
//! Only a profile knows, and only of Antiphon's private condition variables.
//!
//! **Reason**: a notification wakes threads that wait, and is lost otherwise. A thread that does
//! not look at the condition before it waits misses what was notified before, and sleeps until its
//! deadline.

use antiphon_report::table::{count, duration};

use super::condition::{self, Condition};
use super::evidence::ratio;
use super::{Evidence, Finding};

/// The least number of waits, and of notifications.
const LEAST: u64 = 3;
/// The least share of waits that ended at their deadline, and of notifications without a waiter.
const LEAST_SHARE: f64 = 0.9;
/// The least time of the waits, as a share of the run.
const LEAST_PART: f64 = 0.2;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let conditions = condition::all(evidence).into_iter();
    let missed = conditions.filter(|condition| is_missed(condition, evidence.wall_s));
    let Some(missed) = missed.max_by_key(Condition::wait_ns) else { return Vec::new() };
    let says = format!(
        "{} of {} waits at {} ended at their deadline, after {} in all; {} of {} notifications at \
         {} found no waiter.",
        count(missed.expired()),
        count(missed.waited()),
        missed.waited_at(),
        duration(missed.wait_ns() as f64),
        count(missed.in_vain()),
        count(missed.notified()),
        missed.notified_at(),
    );
    let advice = "A notification that comes before the wait is lost: look at the condition, under \
                  the mutex, before each wait (a loop, or wait with a predicate).";
    let weight = ratio(missed.wait_ns() as f64 / 1e9, evidence.wall_s).min(1.0);
    vec![Finding { rule: "missed-wake-ups", says, advice: advice.to_owned(), weight }]
}

/// Returns whether the waits miss their notifications.
pub fn is_missed(condition: &Condition<'_>, wall_s: f64) -> bool {
    let most = |part: u64, all: u64| part >= LEAST && ratio(part as f64, all as f64) >= LEAST_SHARE;
    most(condition.expired(), condition.waited())
        && most(condition.in_vain(), condition.notified())
        && ratio(condition.wait_ns() as f64 / 1e9, wall_s) >= LEAST_PART
}
