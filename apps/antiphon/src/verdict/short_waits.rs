//! Waits for a condition that cost as much as the work, by their number.
//!
//! **Threshold**: a thousand waits or more for a condition variable, twenty thousand or more for
//! each second of the program's CPU time, most of them ended by a notification. Where each
//! notification wakes many threads, [`herd`] reports it.
//!
//! **Reason**: to go to sleep, to be woken and to get a CPU again costs some five microseconds of
//! CPU time. At twenty thousand times a second that is a tenth; tasks of a few microseconds that
//! are handed over one by one cost more to hand over than to do.

use antiphon_report::table::{count, duration};

use super::condition::{self, Condition};
use super::evidence::ratio;
use super::{Evidence, Finding, herd};

/// The least number of waits.
const LEAST: u64 = 1000;
/// The least number of waits for each second of CPU time.
const LEAST_RATE: f64 = 20e3;
/// The cost of a sleep and a wake-up, in seconds: an estimate, which only orders the findings.
const COST_S: f64 = 5e-6;
/// The most weight: that much of the time, and no more, may be in the waits.
const MOST_WEIGHT: f64 = 0.5;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let cpu_s = evidence.report.run.cpu_s;
    let rate = |condition: &Condition<'_>| ratio(condition.waited() as f64, cpu_s);
    let conditions = condition::all(evidence).into_iter().filter(|condition| {
        condition.waited() >= LEAST
            && condition.expired() < condition.waited() / 2
            && rate(condition) >= LEAST_RATE
            && !herd::is_herd(condition)
    });
    let Some(most) = conditions.max_by_key(Condition::waited) else { return Vec::new() };
    let says = format!(
        "Threads slept for a condition {} times, most of the time at {}, for {} on average: once \
         in {} of CPU time.",
        count(most.waited()),
        most.waited_at(),
        duration(most.mean_s() * 1e9),
        duration(1e9 / rate(&most)),
    );
    let advice = "To sleep and to be woken costs some microseconds each time, here about as much \
                  as the work: hand over several items at a time, make them larger, or use fewer \
                  threads.";
    let weight = (rate(&most) * COST_S).min(MOST_WEIGHT);
    vec![Finding { rule: "short-waits", says, advice: advice.to_owned(), weight }]
}
