//! Rare and long waits: for owners that had lost their CPU, or slept.
//!
//! **Threshold**: a tenth of the working time is spent waiting for the lock, and most of that in
//! waits of a millisecond and more, fewer than one in a hundred acquisitions. Only a profile knows.
//!
//! **Reason**: a lock that is mostly free is rarely waited for. A thread that finds it taken and
//! then waits for a time slice waits for an owner that does not run: the owner sleeps in its
//! section, or another thread has its CPU. The lock is not the cause.

use antiphon_report::table::{count, duration};

use super::contention::LEAST_SHARE;
use super::evidence::{Class, likewise};
use super::{Evidence, Finding, percent};

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    if !evidence.report.run.profile {
        return Vec::new();
    }
    let is_rare = |class: &Class<'_>| class.rare_long_waits().is_some();
    let found: Vec<_> =
        evidence.waited_for(LEAST_SHARE).filter(|(_, class)| is_rare(class)).collect();
    let Some((&(share, class), others)) = found.split_first() else { return Vec::new() };
    let Some((waits, ns)) = class.rare_long_waits() else { return Vec::new() };
    let says = format!(
        "Threads spent {} of their working time waiting for {}, most of it at {}: only {} of {} \
         acquisitions waited for long, but for {} on average.{}",
        percent(share),
        class.name(),
        class.waited_at().label(),
        count(waits),
        count(class.acquisitions),
        duration(ns as f64 / waits.max(1) as f64),
        likewise(others),
    );
    let advice = "Its owner did not run meanwhile: it slept in its section, or more threads than \
                  CPUs wanted to run. Another lock changes little.";
    vec![Finding { rule: "preempted-owner", says, advice: advice.to_owned(), weight: share }]
}
