//! Threads that wait for each other at the end of the run.
//!
//! **Threshold**: a circle of threads, each of which waits for a lock that the next one holds; or
//! one thread that waits for a lock that it holds itself. Only a profile knows the owners. Without
//! a profile, and where the owner was not seen, the rule reports threads that waited for a lock to
//! the end, for a second or a fifth of the run.
//!
//! **Reason**: none of them will ever go on.

use std::collections::{BTreeMap, BTreeSet};

use antiphon_report::table::duration;
use antiphon_report::words::several;

use super::{Evidence, Finding, STOPS, starved};
use crate::run::summary::Stuck;

/// A thread that waits to the end for longer than this is stuck, not unlucky; or for [`LONG_PART`]
/// of the run, if that is shorter.
const LONG_NS: f64 = 1e9;
const LONG_PART: f64 = 0.2;
/// The least length of such a wait, however short the run is.
const LEAST_NS: f64 = 50e6;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let stuck = &evidence.report.stuck;
    if let Some(circle) = circle(stuck) {
        // Each thread holds the lock that the thread before it waits for.
        let before = circle.iter().cycle().skip(circle.len() - 1);
        let steps: Vec<_> = circle
            .iter()
            .zip(before)
            .map(|((thread, at), (waiter, _))| {
                let lock = thread.name.as_deref().map(|name| format!(" for {name}"));
                format!(
                    "thread {} waits{} at {} and holds {}, taken at {at}",
                    thread.tid,
                    lock.unwrap_or_default(),
                    thread.site.label(),
                    waiter.name.as_deref().unwrap_or("what the one before it waits for"),
                )
            })
            .collect();
        if let [(itself, at)] = &circle[..] {
            let says = format!(
                "The program ended in a deadlock of one thread: thread {} waits at {} for {}, \
                 which it has taken at {at}.",
                itself.tid,
                itself.site.label(),
                itself.lock(),
            );
            let advice = "Look for a return or an exception without an unlock, or for a call, with \
                          the lock held, of a function that takes it again.";
            return vec![finding(says, advice)];
        }
        let says = format!("The program ended in a deadlock: {}.", steps.join("; "));
        let advice = "Take these locks in one order everywhere, or release one before the other is \
                      waited for.";
        return vec![finding(says, advice)];
    }
    let least_ns = LONG_NS.min(evidence.wall_s * 1e9 * LONG_PART).max(LEAST_NS);
    let is_long = |thread: &&Stuck| thread.waited_ns as f64 >= least_ns;
    let stuck = stuck.iter().filter(|thread| !starved::waits_for_readers(evidence, thread));
    let long: Vec<_> = stuck.filter(is_long).collect();
    let Some(longest) = long.iter().max_by_key(|thread| thread.waited_ns) else {
        return Vec::new();
    };
    let says = format!(
        "At the end {} still waited for {}, longest at {}, for {}.{}",
        several(long.len() as u64, "thread"),
        locks(&long),
        longest.site.label(),
        duration(longest.waited_ns as f64),
        unreleased(evidence, longest),
    );
    let advice = if evidence.report.run.profile {
        "Look for a return or an exception without an unlock, or an owner that waits for something \
         else, such as a condition or the end of a thread."
    } else {
        "Look for a return or an exception without an unlock, or for a deadlock; --profile names \
         the owners."
    };
    vec![finding(says, advice)]
}

/// The locks that the threads wait for.
fn locks(threads: &[&Stuck]) -> String {
    let names: BTreeSet<_> = threads.iter().map(|thread| thread.lock()).collect();
    let names: Vec<_> = names.into_iter().collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// Where the lock was taken and not released, as far as a profile knows.
fn unreleased(evidence: &Evidence<'_>, stuck: &Stuck) -> String {
    let rows = evidence.report.locks.iter();
    let open = rows
        .filter(|row| (row.pid, row.address) == (stuck.pid, stuck.address))
        .filter(|row| row.acquisitions > row.hold.count() && evidence.report.run.profile)
        .map(|row| row.holder())
        .next();
    open.map_or(String::new(), |site| format!(" It was taken at {site} and not released."))
}

fn finding(says: String, advice: &str) -> Finding {
    Finding { rule: "deadlock", says, advice: advice.to_owned(), weight: STOPS }
}

/// A circle of threads that wait for each other: each thread, with the place where it took the lock
/// that the thread before it waits for.
fn circle(stuck: &[Stuck]) -> Option<Vec<(&Stuck, String)>> {
    let owners: BTreeMap<(u32, u64), (usize, String)> = stuck
        .iter()
        .enumerate()
        .flat_map(|(at, thread)| {
            let key = move |address| (thread.pid, address);
            thread.held.iter().map(move |(address, site)| (key(*address), (at, site.label())))
        })
        .collect();
    for begin in 0..stuck.len() {
        let mut path: Vec<(usize, String)> = Vec::new();
        let mut now = begin;
        while let Some((owner, taken_at)) = owners.get(&(stuck[now].pid, stuck[now].address)) {
            path.push((*owner, taken_at.clone()));
            if *owner == begin {
                return Some(path.into_iter().map(|(at, site)| (&stuck[at], site)).collect());
            }
            // This circle does not contain `begin`: it is found from its own threads.
            if path.len() > stuck.len() {
                break;
            }
            now = *owner;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::CallSite;

    fn stuck(tid: u32, waits_for: u64, holds: &[u64]) -> Stuck {
        Stuck {
            pid: 1,
            tid,
            address: waits_for,
            name: None,
            site: CallSite::named(format!("wait_{tid}")),
            waited_ns: 1,
            held: holds.iter().map(|&at| (at, CallSite::named(format!("take_{at}")))).collect(),
        }
    }

    #[test]
    fn a_circle_is_found_wherever_it_begins() {
        // Thread 4 waits for a circle of three that does not contain it.
        let threads =
            [stuck(4, 1, &[9]), stuck(1, 2, &[1]), stuck(2, 3, &[7, 2]), stuck(3, 1, &[3])];
        let circle = circle(&threads).expect("a circle");
        let mut ids: Vec<_> = circle.iter().map(|(thread, _)| thread.tid).collect();
        ids.sort_unstable();
        assert_eq!(ids, [1, 2, 3]);
        assert!(circle.iter().any(|(thread, at)| thread.tid == 2 && at == "take_2"));
    }

    #[test]
    fn a_chain_is_no_circle_and_a_thread_may_wait_for_itself() {
        assert!(circle(&[stuck(1, 2, &[1]), stuck(2, 3, &[2])]).is_none());
        assert_eq!(circle(&[stuck(1, 5, &[5])]).map(|circle| circle.len()), Some(1));
        // The same address in another process names another lock.
        let other = Stuck { pid: 2, ..stuck(2, 1, &[2]) };
        assert!(circle(&[stuck(1, 2, &[1]), other]).is_none());
    }
}
