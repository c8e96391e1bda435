//! Threads that call `pthread_mutex_trylock` again and again until they get the lock.
//!
//! **Threshold**: calls that did not wait found a mutex or spinlock taken ten thousand times or
//! more, and a thousand times a second; with a profile, five times for each time that the lock was
//! taken at these call sites, or twice and once in ten microseconds of CPU time, which is no time
//! for other work. (A thread that tries another lock after each failure fails about once for each
//! success.)
//!
//! **Reason**: such a loop is a spinlock without fairness. It uses a CPU for as long as the owner
//! holds the lock, also when the owner needs that CPU to go on, and no waiter has its turn.

use std::collections::BTreeMap;

use antiphon_report::table::count;

use super::evidence::ratio;
use super::{Evidence, Finding};
use crate::run::summary::LockRow;

/// The least number of calls that found the lock taken.
const LEAST: u64 = 10_000;
/// The least number of them in a second.
const LEAST_RATE: f64 = 1000.0;
/// With a profile: the least number of them for each acquisition.
const LEAST_RATIO: f64 = 5.0;
/// The same, if they come once in this CPU time, in seconds, or more often.
const LEAST_RATIO_AT_ONCE: f64 = 2.0;
const AT_ONCE_S: f64 = 10e-6;
/// The time of these calls is not known. They come before [`crowding`](super::crowding), which such
/// loops cause: threads that wait in them want to run.
const WEIGHT: f64 = 0.6;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut sites: BTreeMap<(u32, u64), Vec<&LockRow>> = BTreeMap::new();
    for row in evidence.report.locks.iter().filter(|row| row.refused > 0) {
        sites.entry((row.pid, row.address)).or_default().push(row);
    }
    let refused = |rows: &[&LockRow]| rows.iter().map(|row| row.refused).sum::<u64>();
    let most = sites.into_values().max_by_key(|rows| refused(rows));
    let Some(rows) = most else { return Vec::new() };
    let (vain, had) = (refused(&rows), rows.iter().map(|row| row.acquisitions).sum::<u64>());
    let profile = evidence.report.run.profile;
    let is_rare = vain < LEAST || ratio(vain as f64, evidence.wall_s) < LEAST_RATE;
    let at_once = ratio(evidence.report.run.cpu_s, vain as f64) <= AT_ONCE_S;
    let least = if at_once { LEAST_RATIO_AT_ONCE } else { LEAST_RATIO };
    if is_rare || profile && (vain as f64) < least * had as f64 {
        return Vec::new();
    }
    let at =
        rows.iter().max_by_key(|row| row.refused).map_or(String::new(), |row| row.site.label());
    let each = match had {
        had if profile && had > 0 => format!(", {} times for each success", count(vain / had)),
        _ => String::new(),
    };
    let says = format!("A trylock at {at} found its lock taken {} times{each}.", count(vain));
    let advice = "A loop around trylock is a spinlock without turns: it uses a CPU while it waits, \
                  also the one that the owner needs. Lock, with a deadline if need be, or do other \
                  work after a failure.";
    vec![Finding { rule: "trylock-loop", says, advice: advice.to_owned(), weight: WEIGHT }]
}
