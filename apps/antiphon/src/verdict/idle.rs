//! Threads that wait for work, which is not contention.
//!
//! **Threshold**: threads spent two fifths of their time or more in waits for conditions, and at
//! least the equivalent of one thread for half of the run.
//!
//! **Reason**: a worker without work waits for a condition variable. The longest waits of most
//! reports are of that sort, and no lock makes them shorter.

use std::collections::BTreeMap;

use super::evidence::ratio;
use super::{Evidence, Finding, condition, percent, timed};

/// The least share of all threads' time in waits for conditions.
const LEAST_SHARE: f64 = 0.4;
/// The least number of threads that were idle, on average.
const LEAST_THREADS: f64 = 0.5;
/// Good news: findings with a remedy come first.
const WEIGHT: f64 = 0.05;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    // Threads that wait for an interpreter have work to do, and those that poll may have.
    let idle = condition::all(evidence).into_iter().filter(|it| !timed::is_timed(evidence, it));
    let idle: Vec<_> = idle.flat_map(|condition| condition.waits).collect();
    let idle_s = idle.iter().map(|row| row.wait.sum_ns as f64 / 1e9).sum();
    let (share, threads) =
        (ratio(idle_s, evidence.threads_s).min(1.0), ratio(idle_s, evidence.wall_s));
    if share < LEAST_SHARE || threads < LEAST_THREADS {
        return Vec::new();
    }
    let mut sites: BTreeMap<String, u64> = BTreeMap::new();
    for row in idle {
        *sites.entry(row.site.label()).or_default() += row.wait.sum_ns;
    }
    let most = sites.into_iter().max_by_key(|(_, ns)| *ns);
    let at = most.map_or(String::new(), |(site, _)| format!(", most of it at {site}"));
    let says = format!(
        "Threads were idle for {} of the time: they waited for a condition{at}.",
        percent(share)
    );
    let advice = "That is no contention. If they should have been busy, look at what gives them \
                  work; if not, fewer of them do as well.";
    vec![Finding { rule: "idle", says, advice: advice.to_owned(), weight: WEIGHT }]
}
