//! A lock that many functions take, which may guard unrelated data.
//!
//! **Threshold**: a tenth of the working time is spent waiting for one lock, and three functions or
//! more, not of one type, each have a tenth or more of its sections' time.
//!
//! **Reason**: a lock that grew with its program often guards unrelated data. Then threads wait for
//! work that would not disturb them. The report can't see the data; it can see that the functions
//! differ.

use std::collections::BTreeMap;

use super::contention::LEAST_SHARE;
use super::evidence::ratio;
use super::{Evidence, Finding, capital, percent};

/// The least number of functions.
const LEAST_FUNCTIONS: usize = 3;
/// The least share of the sections' time that makes a function count.
const LEAST_PART: f64 = 0.1;
/// Factor of the weight: this finding comes second to the same lock's finding of contention.
const BESIDE: f64 = 0.9;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (share, class) in evidence.waited_for(LEAST_SHARE).filter(|(_, class)| class.locks == 1) {
        let mut owners: BTreeMap<&str, (u64, String)> = BTreeMap::new();
        for row in &class.rows {
            let Some(own) = row.site.own() else { continue };
            let owner = owners.entry(type_of(&own.function)).or_default();
            owner.0 += row.hold.sum_ns;
            owner.1 = row.site.label();
        }
        let all = class.hold.sum_ns as f64;
        let mut parts: Vec<_> =
            owners.into_values().filter(|(ns, _)| ratio(*ns as f64, all) >= LEAST_PART).collect();
        if parts.len() < LEAST_FUNCTIONS {
            continue;
        }
        parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
        let named: Vec<_> = parts
            .iter()
            .take(4)
            .map(|(ns, at)| format!("{at} ({})", percent(*ns as f64 / all)))
            .collect();
        let says = format!(
            "{} is held by {} functions for a tenth of its sections' time and more: {}.",
            capital(&class.name()),
            parts.len(),
            named.join(", "),
        );
        let advice = "If they use different data, give each its own lock.".to_owned();
        findings.push(Finding { rule: "unrelated", says, advice, weight: share * BESIDE });
    }
    findings
}

/// The type that a function belongs to, by its path; for a function outside of a type, its path.
fn type_of(function: &str) -> &str {
    function.rsplit_once("::").map_or(function, |(of, _)| of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_a_type_are_one_owner() {
        assert_eq!(type_of("Queue::push"), type_of("Queue::pop"));
        assert_ne!(type_of("push"), type_of("pop"));
    }
}
