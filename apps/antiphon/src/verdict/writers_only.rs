//! A readers-writer lock that no thread reads.
//!
//! **Threshold**: all acquisitions of the lock, a thousand or more, are to write. Only a profile
//! knows.
//!
//! **Reason**: a readers-writer lock costs more than a mutex with each acquisition, and is worth it
//! only if readers share it.

use antiphon_report::table::count;

use super::{Evidence, Finding, capital};

/// The least number of acquisitions.
const LEAST: u64 = 1000;
/// Its price is small: what takes time stands before it.
const WEIGHT: f64 = 0.02;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let classes = evidence.classes.iter().filter(|class| {
        evidence.report.run.profile
            && class.acquisitions >= LEAST
            && class.rows.iter().all(|row| row.kind == "wrlock")
    });
    let finding = |class: &super::evidence::Class<'_>| Finding {
        rule: "writers-only",
        says: format!(
            "{} was taken {} times and never to read, as at {}.",
            capital(&class.name()),
            count(class.acquisitions),
            class.waited_at().label(),
        ),
        advice: "A mutex does the same for less.".to_owned(),
        weight: WEIGHT.max(evidence.share(class) * WEIGHT),
    };
    classes.map(finding).collect()
}
