//! Threads that wait for the slowest at a barrier.
//!
//! **Threshold**: threads slept for a fifth of the run or more in `pthread_barrier_wait`, each of
//! them on average, and the thread of their process with the most CPU time had one and a half times
//! as much as they had on average, or more. Their sleeps are seen from outside, so this needs no
//! profile.
//!
//! **Reason**: a barrier lets no thread go on before the last one comes. If one thread has more to
//! do, all others wait for it. If all have the same to do, the waits are for threads that had no
//! CPU, or for the barrier itself, and no work can be shared out better.

use std::collections::BTreeMap;

use antiphon_report::table::duration;
use antiphon_report::words::several;

use super::evidence::ratio;
use super::{Evidence, Finding, percent};
use crate::run::places::BARRIER;

/// The least share of the run that such a thread sleeps there, on average.
const LEAST_SHARE: f64 = 0.2;
/// The least CPU time of the slowest thread, for that of the others.
const LEAST_MORE: f64 = 1.5;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut waiting: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
    for slept in evidence.report.slept.iter().filter(|slept| slept.function == BARRIER) {
        *waiting.entry(slept.pid).or_default().entry(slept.tid).or_default() += slept.slept_s;
    }
    let all = |threads: &BTreeMap<u32, f64>| threads.values().sum::<f64>();
    let most = waiting.iter().max_by(|one, other| all(one.1).total_cmp(&all(other.1)));
    let Some((&pid, threads)) = most else { return Vec::new() };
    let cpu_s = |tid: u32| evidence.report.threads_cpu_s.get(&(pid, tid)).copied().unwrap_or(0.0);
    let of_process = evidence.report.threads_cpu_s.iter().filter(|((of, _), _)| *of == pid);
    let slowest = of_process.max_by(|one, other| one.1.total_cmp(other.1));
    let Some((&(_, slowest), &most_s)) = slowest else { return Vec::new() };
    let others: Vec<_> = threads.iter().filter(|(tid, _)| **tid != slowest).collect();
    let of_each = |sum: f64| ratio(sum, others.len() as f64);
    let slept_s = of_each(others.iter().map(|(_, slept_s)| **slept_s).sum());
    let worked_s = of_each(others.iter().map(|(tid, _)| cpu_s(**tid)).sum());
    let share = ratio(slept_s, evidence.wall_s).min(1.0);
    if share < LEAST_SHARE || most_s < LEAST_MORE * worked_s {
        return Vec::new();
    }
    let says = format!(
        "{} slept for {} of the run at a barrier (pthread_barrier_wait): thread {slowest} used {} \
         of CPU time, each of them {} on average.",
        several(others.len() as u64, "thread"),
        percent(share),
        duration(most_s * 1e9),
        duration(worked_s * 1e9),
    );
    let advice = "All wait for the slowest between two barriers: share its work out, in equal or \
                  in smaller parts that threads take when they are free.";
    vec![Finding { rule: "imbalance", says, advice: advice.to_owned(), weight: share }]
}
