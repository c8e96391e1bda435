//! A lock that a thread took and never released, while others waited for it in vain.
//!
//! **Threshold**: a hold of the lock did not end, and nine in ten waits for it, three or more,
//! ended at their deadline. Only a profile knows the holds. Waits that have not ended are
//! [`deadlock`](super::deadlock)'s.
//!
//! **Reason**: a return or an exception between lock and unlock leaves the lock taken for ever.
//! Threads that wait with a deadline go on without it, and the program seems to be slow.

use antiphon_report::table::duration;
use antiphon_report::words::several;

use super::evidence::{Class, ratio};
use super::{Evidence, Finding, STOPS};
use crate::run::summary::LockRow;

/// The least number of waits that ended without the lock, and their least share of all.
const LEAST: u64 = 3;
const LEAST_SHARE: f64 = 0.9;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let found = evidence.classes.iter().find_map(|class| Some((class, open(evidence, class)?)));
    let Some((class, open)) = found else { return Vec::new() };
    let says = format!(
        "{} was taken at {} and not released: {} for it, {} in all, ended at their deadline.",
        super::capital(&class.name()),
        open.holder(),
        several(gave_up(class), "wait"),
        duration(class.wait.sum_ns as f64),
    );
    let advice = "Look there for a return or an exception without an unlock.".to_owned();
    vec![Finding { rule: "unreleased", says, advice, weight: STOPS }]
}

/// Returns whether a thread has kept a lock of the class, and waits for it were in vain.
pub fn is_kept(evidence: &Evidence<'_>, class: &Class<'_>) -> bool {
    open(evidence, class).is_some()
}

fn gave_up(class: &Class<'_>) -> u64 {
    class.rows.iter().map(|row| row.gave_up).sum()
}

/// The row at which a lock of the class was taken last, if waits for it were in vain.
fn open<'a>(evidence: &Evidence<'_>, class: &Class<'a>) -> Option<&'a LockRow> {
    let waits: u64 = class.rows.iter().map(|row| row.contended).sum();
    let vain = gave_up(class);
    let in_vain = vain >= LEAST && ratio(vain as f64, waits as f64) >= LEAST_SHARE;
    // Holds of spinlocks, and of locks that the C library keeps, are not recorded.
    let held = |row: &&&LockRow| !matches!(row.kind, "spin" | "foreign");
    let open = class.rows.iter().filter(held).find(|row| row.acquisitions > row.hold.count());
    open.copied().filter(|_| in_vain && evidence.report.run.profile && !class.has_stuck())
}
