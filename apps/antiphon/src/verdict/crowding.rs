//! More threads that want to run than CPUs.
//!
//! **Threshold**: threads were ready without a CPU for a fifth of the working time or more, and on
//! average more threads were running or ready than there are CPUs.
//!
//! **Reason**: beyond one thread per CPU, threads take turns and no more work is done. An owner
//! that loses its CPU makes all waiters of its lock wait for a time slice longer.

use antiphon_report::words::several;

use super::evidence::ratio;
use super::{Evidence, Finding, percent};

/// The least share of the working time in which threads were ready without a CPU.
const LEAST_SHARE: f64 = 0.2;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let queued_s = evidence.report.blocked.run_queue;
    let share = ratio(queued_s, evidence.working_s);
    let wanted = ratio(queued_s + evidence.report.run.cpu_s, evidence.wall_s);
    if share < LEAST_SHARE || wanted <= evidence.cpus {
        return Vec::new();
    }
    let cpus = several(evidence.report.run.cpus as u64, "CPU");
    let says = format!(
        "{wanted:.1} threads wanted to run at a time, on {cpus}: they were ready without a CPU for \
         {} of their working time.",
        percent(share),
    );
    let advice = "Use no more threads with work to do than CPUs, or let fewer programs share these \
                  CPUs.";
    vec![Finding { rule: "crowding", says, advice: advice.to_owned(), weight: share }]
}
