//! Threads that live for a short time, one after the other.
//!
//! **Threshold**: five hundred threads or more, with at most 200 µs of the program's CPU time for
//! each. Threads count if they were sampled or have used a lock.
//!
//! **Reason**: to start a thread and to end it costs some tens of microseconds, and its memory must
//! be mapped and touched. A thread for each small task costs more than the task.

use antiphon_report::table::{count, duration};

use super::evidence::ratio;
use super::{Evidence, Finding};

/// The least number of threads.
const LEAST: usize = 500;
/// The most CPU time for each, in seconds.
const MOST_S: f64 = 200e-6;
/// A start and an end are a good part of that time; how much is not known.
const WEIGHT: f64 = 0.2;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let threads = evidence.report.threads;
    let each_s = ratio(evidence.report.run.cpu_s, threads as f64);
    if threads < LEAST || each_s > MOST_S {
        return Vec::new();
    }
    let says = format!(
        "{} threads were started in {}, with {} of CPU time for each.",
        count(threads as u64),
        duration(evidence.wall_s * 1e9),
        duration(each_s * 1e9),
    );
    let advice = "To start and to end a thread costs some tens of microseconds: keep a few threads \
                  and hand tasks to them.";
    vec![Finding { rule: "short-lives", says, advice: advice.to_owned(), weight: WEIGHT }]
}
