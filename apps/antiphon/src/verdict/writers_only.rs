//! A readers-writer lock that no thread reads.
//!
//! **Threshold**: all acquisitions of the lock, a thousand or more, are for writing. Only a profile
//! knows.
//!
//! **Reason**: each acquisition of a readers-writer lock costs more than that of a mutex, which
//! pays only if readers share the lock.

use antiphon_report::table::count;

use super::{Evidence, Finding, capital};

/// The least number of acquisitions.
const LEAST: u64 = 1000;
/// Small, because the extra cost is small: findings about time come first.
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
