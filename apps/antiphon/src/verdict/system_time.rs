//! CPU time that the kernel uses for the program's calls.
//!
//! **Threshold**: half of the program's CPU time or more, a twentieth of a second, and a tenth of a
//! CPU on average: what a program that mostly rests does in the kernel is no matter.
//!
//! **Reason**: a thread that waits in a loop around `sched_yield` looks busy, and so does one that
//! makes many short calls. Neither waits for a lock, and their time is no work of the program. From
//! outside they can't be told apart, so the advice names a tool that can.

use super::evidence::ratio;
use super::{Evidence, Finding, percent};

/// The least share of the CPU time.
const LEAST_SHARE: f64 = 0.5;
/// The least time in the kernel, in seconds, and the least number of CPUs that it takes on average.
const LEAST_S: f64 = 0.05;
const LEAST_CPUS: f64 = 0.1;
/// Less than a finding about time that locks take: those cause system calls, too.
const WEIGHT: f64 = 0.095;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let run = &evidence.report.run;
    let share = ratio(run.system_s, run.cpu_s);
    let cpus = ratio(run.system_s, evidence.wall_s);
    if share < LEAST_SHARE || run.system_s < LEAST_S || cpus < LEAST_CPUS {
        return Vec::new();
    }
    let says = format!(
        "{} of the CPU time was in the kernel: system calls, and faults of pages.",
        percent(share),
    );
    let advice = "A loop around sched_yield is such time: wait for a condition instead. So are \
                  many short reads and writes, wake-ups and new threads; strace -f -c counts the \
                  calls.";
    vec![Finding { rule: "system-time", says, advice: advice.to_owned(), weight: WEIGHT }]
}
