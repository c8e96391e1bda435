//! Waits that a preloaded library can't influence.
//!
//! **Threshold**: threads spent a tenth of their time or more in raw futexes, semaphores or I/O.
//!
//! **Reason**: Rust's std, C++20, Go, Java and OpenMP have locks of their own, made of futexes. The
//! report shows only that threads slept there, and the library replaces none of them. Files and
//! sockets are not locks at all.

use super::evidence::ratio;
use super::{Evidence, Finding, percent};

/// The least share of all threads' time in such waits.
const LEAST_SHARE: f64 = 0.1;
/// Findings that can be acted on here come first.
const WEIGHT: f64 = 0.04;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let blocked = &evidence.report.blocked;
    // These have findings of their own.
    let named_s: f64 = evidence.report.slept.iter().map(|slept| slept.slept_s).sum();
    let outside = evidence.report.run.is_outside();
    let kinds = [
        (
            (blocked.raw_futex - named_s).max(0.0),
            if outside { "futexes: locks, conditions or others" } else { "raw futexes" },
            if outside {
                "antiphon run --profile says which of these are pthread locks, and where they are \
                 taken."
            } else {
                "Locks of Rust's std, C++20 (atomic waits, semaphores, latches), Go, Java and \
                 OpenMP are made of these, and are out of a preloaded library's reach; in Rust \
                 and C programs antiphon's own can be built in."
            },
        ),
        (
            blocked.semaphore,
            "semaphores",
            "Semaphores are not replaced. Threads that wait there for work are idle.",
        ),
        (
            blocked.io,
            "I/O: files, pipes, sockets or pages",
            "No lock changes that: it is the device, the network or the other program.",
        ),
    ];
    let finding = |(seconds, what, advice): (f64, &str, &str)| {
        let share = ratio(seconds, evidence.threads_s).min(1.0);
        (share >= LEAST_SHARE).then(|| Finding {
            rule: "unreached",
            says: format!("Threads slept for {} of the time in {what}.", percent(share)),
            advice: advice.to_owned(),
            weight: WEIGHT * share,
        })
    };
    kinds.into_iter().filter_map(finding).collect()
}
