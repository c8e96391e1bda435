//! Threads that wait for CPython's global interpreter lock.
//!
//! **Threshold**: threads waited in the interpreter's `take_gil` for a fifth of the run or more,
//! all together.
//!
//! **Reason**: the lock is a mutex and a condition variable of the interpreter, which no program
//! can change. Its waits look like threads without work, and its notifications like wake-ups in
//! vain.

use antiphon_report::table::duration;

use super::evidence::ratio;
use super::{Evidence, Finding};
use crate::run::summary::{CONDITION, LockRow};

/// The least time of the waits, as a share of the run.
const LEAST: f64 = 0.2;
/// The interpreter's functions that take and release the lock.
const FUNCTIONS: [&str; 2] = ["take_gil", "drop_gil"];

/// Returns whether the row is of the interpreter's lock.
pub fn is_of_interpreter(row: &LockRow) -> bool {
    let site = &row.site;
    let known = |name: &str| FUNCTIONS.contains(&name);
    site.frames.iter().any(|frame| known(&frame.function))
        || site.name.split("+0x").next().is_some_and(known)
}

/// The time that threads waited for the interpreter's lock, in seconds.
pub fn waited_s(evidence: &Evidence<'_>) -> f64 {
    let rows = evidence.report.locks.iter().filter(|row| row.kind == CONDITION);
    rows.filter(|row| is_of_interpreter(row)).map(|row| row.wait.sum_ns as f64 / 1e9).sum()
}

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let waited_s = waited_s(evidence);
    if ratio(waited_s, evidence.wall_s) < LEAST {
        return Vec::new();
    }
    let says = format!(
        "Threads waited for Python's global interpreter lock for {} in all, in a run of {}: they \
         run one at a time.",
        duration(waited_s * 1e9),
        duration(evidence.wall_s * 1e9),
    );
    let share = ratio(waited_s, waited_s + evidence.report.run.cpu_s);
    let advice = "No other lock changes that. Use processes (multiprocessing), code that releases \
                  it while it computes, or an interpreter without it.";
    vec![Finding { rule: "interpreter-lock", says, advice: advice.to_owned(), weight: share }]
}
