//! Rare and long waits: for owners that had lost their CPU, or slept.
//!
//! **Threshold**: a tenth of the working time is spent waiting for the lock, and most of that in
//! waits of a millisecond and more, fewer than one in a hundred acquisitions. Only a profile knows.
//! Its sections take less than a third of the program's CPU time, and it is not taken once in
//! 0.4 µs of it: else [`contention`](super::contention) or [`convoy`](super::convoy) reports it.
//!
//! **Reason**: a lock that is mostly free is rarely waited for. A thread that finds it taken and
//! then waits for a time slice waits for an owner that does not run: the owner sleeps in its
//! section, or another thread has its CPU. The lock is not the cause.

use antiphon_report::table::{count, duration};

use super::contention::LEAST_SHARE;
use super::evidence::{Class, likewise};
use super::{Evidence, Finding, percent, starved};

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let is_rare = |class: &Class<'_>| {
        evidence.rare_long_waits(class).is_some()
            && evidence.long_section(class).is_none()
            && !starved::is_starved(evidence, &class.rows)
    };
    let found: Vec<_> =
        evidence.waited_for(LEAST_SHARE).filter(|(_, class)| is_rare(class)).collect();
    let Some((&(share, class), others)) = found.split_first() else { return Vec::new() };
    let Some((waits, ns)) = evidence.rare_long_waits(class) else { return Vec::new() };
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
    let advice = match class.noun {
        "spinlock" => {
            "Its owner did not run meanwhile: more threads than CPUs wanted to run, here or in \
             other programs. Threads that spin for it use a CPU which its owner may need: a mutex \
             lets them sleep."
        }
        _ => {
            "Its owner did not run meanwhile: it slept in its section, or more threads than CPUs \
             wanted to run, here or in other programs (an owner of low priority waits longest). \
             Another lock changes little."
        }
    };
    vec![Finding { rule: "preempted-owner", says, advice: advice.to_owned(), weight: share }]
}
