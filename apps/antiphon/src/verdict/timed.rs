//! Waits for a condition that are short, and end at their deadline again and again.
//!
//! **Threshold**: nine in ten waits for a condition variable, fifty or more, ended at their
//! deadline, after at most twenty milliseconds on average; threads were in such waits for a quarter
//! of the run, all together. Waits that miss their notifications are [`missed`]'s.
//!
//! **Reason**: a thread that waits so only looks at the condition from time to time: it learns of a
//! change half a wait too late, and uses its CPU when nothing has changed. Often the notification
//! is missing, and the deadline hides that.

use antiphon_report::table::{count, duration};

use super::condition::{self, Condition};
use super::evidence::ratio;
use super::{Evidence, Finding, missed};

/// The longest mean wait, in seconds.
const LONGEST_S: f64 = 0.02;
/// The least number of waits.
const LEAST: u64 = 50;
/// The least share of the waits that ended at their deadline.
const LEAST_SHARE: f64 = 0.9;
/// The least number of threads that were in such waits, on average.
const LEAST_THREADS: f64 = 0.25;
/// Findings about time that locks take come first. More certain than sleeps that look like polling:
/// a thread that waits for a condition does wait for another thread.
const WEIGHT: f64 = 0.08;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let conditions = condition::all(evidence).into_iter();
    let timed = conditions.filter(|condition| is_timed(evidence, condition));
    let Some(timed) = timed.max_by_key(Condition::wait_ns) else { return Vec::new() };
    let notified = match timed.notified() {
        _ if !evidence.report.run.profile => String::new(),
        0 => " No thread notified it.".to_owned(),
        some => format!(" It was notified {} times, most at {}.", count(some), timed.notified_at()),
    };
    let says = format!(
        "{} of {} waits for a condition at {} ended at their deadline, after {} on average.\
         {notified}",
        count(timed.expired()),
        count(timed.waited()),
        timed.waited_at(),
        duration(timed.mean_s() * 1e9),
    );
    let advice = "That is polling: notify the condition wherever it becomes true, and wait without \
                  a deadline, or with a long one.";
    vec![Finding { rule: "timed-waits", says, advice: advice.to_owned(), weight: WEIGHT }]
}

/// Returns whether threads poll the condition by waits with deadlines.
pub fn is_timed(evidence: &Evidence<'_>, condition: &Condition<'_>) -> bool {
    let (waited, expired) = (condition.waited(), condition.expired());
    waited >= LEAST
        && ratio(expired as f64, waited as f64) >= LEAST_SHARE
        && condition.mean_s() <= LONGEST_S
        && ratio(condition.wait_ns() as f64 / 1e9, evidence.wall_s) >= LEAST_THREADS
        && !missed::is_missed(condition, evidence.wall_s)
}
