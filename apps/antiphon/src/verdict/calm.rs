//! Finds that no lock could make the program faster, and says what it spends its time on.
//!
//! **Threshold**: no rule has found anything that takes time, and waits for locks are less than a
//! tenth of the working time, the threshold of [`contention`](super::contention).
//!
//! **Reason**: that nothing is to be gained is an answer too, and the one that most programs get.

use super::evidence::ratio;
use super::{Evidence, Finding, percent};

/// Findings of less weight are not about the working time.
const LEAST_WEIGHT: f64 = 0.1;

pub fn find(evidence: &Evidence<'_>, findings: &[Finding]) -> Option<Finding> {
    let report = evidence.report;
    let nothing_seen = report.run.is_outside() || report.processes == 0 || report.unseen > 0;
    // The threads wait for something other than pthread locks, and a finding says so.
    let is_elsewhere = findings.iter().any(|finding| finding.rule == "unreached");
    if findings.iter().any(|finding| finding.weight >= LEAST_WEIGHT) || nothing_seen || is_elsewhere
    {
        return None;
    }
    let waits_s = report.blocked.mutex + report.blocked.rwlock + report.blocked.spin;
    let busy = ratio(report.run.cpu_s, evidence.wall_s);
    let says = format!(
        "Waits for pthread locks are {} of the working time; {busy:.1} of {} CPUs were busy on \
         average.",
        percent(ratio(waits_s, evidence.working_s)),
        report.run.cpus,
    );
    let advice = "Another lock would gain next to nothing here.".to_owned();
    Some(Finding { rule: "calm", says, advice, weight: 0.0 })
}
