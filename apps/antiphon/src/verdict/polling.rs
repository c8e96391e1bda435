//! Threads that sleep for short times, again and again.
//!
//! **Threshold**: a thread sleeps for a third of its time or more, for at most fifteen milliseconds
//! a time on average, fifty times or more; such threads were asleep for a quarter of the run
//! together, or more. Their sleeps are seen from outside, so this needs no profile.
//!
//! **Reason**: a thread that looks at a variable between two sleeps reacts half a sleep too late on
//! average, and uses its CPU when there is nothing to do. A notification has neither fault. From
//! outside it can't be told from a thread that keeps to a rate, so the advice names both; but a
//! thread that sleeps up to a time on the clock keeps to a rate, and does not count.

use std::collections::BTreeMap;

use antiphon_report::table::{duration, si};
use antiphon_report::words::several;

use super::evidence::ratio;
use super::{Evidence, Finding, percent};
use crate::run::sleepers::Sleeper;

/// The longest mean sleep, in seconds.
const LONGEST_S: f64 = 0.015;
/// The least share of a thread's time in sleeps.
const LEAST_SHARE: f64 = 0.33;
/// The least number of sleeps of a thread.
const LEAST_TIMES: u64 = 50;
/// The least number of threads that were in such sleeps, on average.
const LEAST_THREADS: f64 = 0.25;
/// Findings about time that locks take come first: that a thread polls is likely, and not certain.
const WEIGHT: f64 = 0.06;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let polls = |sleeper: &&Sleeper| {
        sleeper.times >= LEAST_TIMES
            && sleeper.mean_s() <= LONGEST_S
            && ratio(sleeper.slept_s, sleeper.seen_s) >= LEAST_SHARE
    };
    let all: Vec<_> = evidence.report.sleepers.iter().filter(polls).collect();
    let sum = |of: fn(&Sleeper) -> f64| all.iter().map(|sleeper| of(sleeper)).sum::<f64>();
    let (slept_s, seen_s, times) =
        (sum(|it| it.slept_s), sum(|it| it.seen_s), sum(|it| it.times as f64));
    if ratio(slept_s, evidence.wall_s) < LEAST_THREADS {
        return Vec::new();
    }
    let mut names: BTreeMap<&str, f64> = BTreeMap::new();
    for sleeper in &all {
        *names.entry(&sleeper.name).or_default() += sleeper.slept_s;
    }
    let most = names.iter().max_by(|one, other| one.1.total_cmp(other.1));
    let named = most.map_or("", |(name, _)| name);
    let also = if names.len() > 1 { " and others" } else { "" };
    let says = format!(
        "{} ({named}{also}) slept for {} of the time, {} on average: that is {} times a second.",
        several(all.len() as u64, "thread"),
        percent(ratio(slept_s, seen_s)),
        duration(ratio(slept_s, times) * 1e9),
        si(ratio(times, seen_s) * all.len() as f64),
    );
    let advice = "If they look after each sleep whether another thread has done something, that is \
                  polling: they find out late, and look in vain in between; a condition variable \
                  wakes them at once. If the sleeps pace the program, all is well.";
    vec![Finding { rule: "polling", says, advice: advice.to_owned(), weight: WEIGHT }]
}
