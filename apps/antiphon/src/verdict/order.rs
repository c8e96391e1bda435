//! Locks that were taken in both orders.
//!
//! **Threshold**: one such pair of locks, or one circle of several.
//!
//! **Reason**: if two threads take the locks in opposite orders at the same time, neither goes on.
//! That it did not happen in this run is luck.

use super::{Evidence, Finding, MAY_STOP};
use crate::run::order::Step;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let groups = evidence.report.order.by_site();
    let Some(&(_, steps)) = groups.first() else { return Vec::new() };
    let how = if steps.len() == 2 { "in both orders" } else { "in a circle" };
    if let Some(says) = alike(steps, how) {
        let says = says + &more(groups.len());
        return vec![finding(says)];
    }
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
    let says = format!(
        "Locks are taken {how}: {}. That is a deadlock if it happens at the same time.{}",
        ways.join(", "),
        more(groups.len()),
    );
    vec![finding(says)]
}

fn more(groups: usize) -> String {
    match groups - 1 {
        0 => String::new(),
        more => format!(" There are {more} more such cases below."),
    }
}

fn finding(says: String) -> Finding {
    let advice = "Take these locks in one order everywhere, or both at once (std::scoped_lock).";
    Finding { rule: "lock-order", says, advice: advice.to_owned(), weight: MAY_STOP }
}

/// The sentence about locks of one class, which are all taken at the same two places.
fn alike(steps: &[Step], how: &str) -> Option<String> {
    let (first, rest) = steps.split_first()?;
    let same =
        |step: &Step| (&step.held.site, &step.taken.site) == (&first.held.site, &first.taken.site);
    let unnamed = |step: &Step| step.held.variable.is_none() && step.taken.variable.is_none();
    if !steps.iter().all(unnamed) || !rest.iter().all(same) {
        return None;
    }
    let made = first.taken.initialised.as_deref();
    let made = made.map_or(String::new(), |made| format!(" {made}"));
    Some(format!(
        "Locks{made} are taken {how}: one at {} while another, taken at {}, is held, and these two \
         the other way round. That is a deadlock if it happens at the same time.",
        first.taken.site, first.held.site,
    ))
}
