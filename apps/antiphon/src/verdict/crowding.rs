//! More threads that want to run than CPUs.
//!
//! **Threshold**: threads were ready without a CPU for a fifth of the working time or more, and on
//! average more threads were running or ready than there are CPUs; twice as many, if other programs
//! had a part of the CPUs ([`busy_machine`]): then also few threads are ready for long.
//!
//! **Reason**: beyond one thread per CPU, threads take turns and no more work is done. An owner
//! that loses its CPU makes all waiters of its lock wait for a time slice longer.

use antiphon_report::words::several;

use super::evidence::ratio;
use super::{Evidence, Finding, busy_machine, percent};

/// The least share of the working time in which threads were ready without a CPU.
pub const LEAST_SHARE: f64 = 0.2;
/// The least number of threads that wanted to run, for each CPU, if other programs had some.
const LEAST_BESIDE_OTHERS: f64 = 2.0;
/// Factor of the weight. Turns cost little by themselves; a lock for which they make threads wait
/// has its own finding, which comes first.
const TURNS: f64 = 0.5;

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let (share, wanted) = (share(evidence), wanted(evidence));
    let least = if busy_machine::are_taken(evidence) { LEAST_BESIDE_OTHERS } else { 1.0 };
    if share < LEAST_SHARE || wanted <= evidence.cpus * least {
        return Vec::new();
    }
    let cpus = several(evidence.report.run.cpus as u64, "CPU");
    let says = format!(
        "The CPUs are the limit: {wanted:.1} threads wanted to run at a time, on {cpus}; they were \
         ready without a CPU for {} of their working time.",
        percent(share),
    );
    let advice = "More threads than CPUs do no more work: use as many as there are CPUs. If that \
                  is so already, only less work or more CPUs help.";
    vec![Finding { rule: "crowding", says, advice: advice.to_owned(), weight: share * TURNS }]
}

/// The share of the working time in which threads were ready without a CPU.
pub fn share(evidence: &Evidence<'_>) -> f64 {
    ratio(evidence.report.blocked.run_queue, evidence.working_s)
}

/// The number of threads that were running or ready, on average.
pub fn wanted(evidence: &Evidence<'_>) -> f64 {
    ratio(evidence.report.blocked.run_queue + evidence.report.run.cpu_s, evidence.wall_s)
}
