//! Locks that were taken in both orders.
//!
//! **Threshold**: one such pair of locks, or one circle of several.
//!
//! **Reason**: if two threads take the locks in opposite orders at the same time, neither goes on.
//! That it did not happen in this run is luck.

use super::{Evidence, Finding, MAY_STOP};

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let groups = evidence.report.order.by_site();
    let Some(&(_, steps)) = groups.first() else { return Vec::new() };
    let ways: Vec<_> = steps
        .iter()
        .take(3)
        .map(|step| match (&step.taken.variable, &step.held.variable) {
            (Some(taken), Some(held)) => {
                format!("{taken} at {} while {held} is held", step.taken.site)
            }
            _ => format!("one at {} while that of {} is held", step.taken.site, step.held.site),
        })
        .collect();
    let how = if steps.len() == 2 { "in both orders" } else { "in a circle" };
    let more = match groups.len() - 1 {
        0 => String::new(),
        more => format!(" There are {more} more such cases below."),
    };
    let says = format!(
        "Locks are taken {how}: {}. That is a deadlock if it happens at the same time.{more}",
        ways.join(", ")
    );
    let advice = "Take these locks in one order everywhere, or both at once (std::scoped_lock).";
    vec![Finding { rule: "lock-order", says, advice: advice.to_owned(), weight: MAY_STOP }]
}
