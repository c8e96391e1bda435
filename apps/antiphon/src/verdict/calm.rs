//! Finds that no lock could make the program faster, and says what it spends its time on.
//!
//! **Threshold**: no rule has found anything that takes time; no lock has a tenth of the working
//! time in waits, the threshold of [`contention`](super::contention).
//!
//! **Reason**: that nothing is to be gained is an answer too, and the one that most programs get.

use super::contention::LEAST_SHARE;
use super::evidence::ratio;
use super::{Evidence, Finding, crowding, percent};

/// Findings of less weight are not about the working time.
const LEAST_WEIGHT: f64 = 0.1;
/// The least number of threads that wanted to run, on average, where some may spin for another one.
const SPINNING: f64 = 0.9;

pub fn find(evidence: &Evidence<'_>, findings: &[Finding]) -> Option<Finding> {
    let report = evidence.report;
    let nothing_seen = report.run.is_outside() || report.processes == 0 || report.unseen > 0;
    // The threads wait for something other than pthread locks, and a finding says so.
    const ELSEWHERE: [&str; 2] = ["unreached", "lost-wake-up"];
    let is_elsewhere = findings.iter().any(|finding| ELSEWHERE.contains(&finding.rule));
    if findings.iter().any(|finding| finding.weight >= LEAST_WEIGHT) || nothing_seen || is_elsewhere
    {
        return None;
    }
    let waits_s = report.blocked.mutex + report.blocked.rwlock + report.blocked.spin;
    let waits = ratio(waits_s, evidence.working_s);
    let busy = ratio(report.run.cpu_s, evidence.wall_s);
    let says = format!(
        "Waits for pthread locks are {} of the working time; {busy:.1} of {} CPUs were busy on \
         average.",
        percent(waits),
        report.run.cpus,
    );
    let mut advice = if waits < LEAST_SHARE {
        "Another lock would gain next to nothing here.".to_owned()
    } else {
        "They are for many locks: none has a tenth of the working time.".to_owned()
    };
    if report.threads > 1 && crowding::wanted(evidence) >= SPINNING {
        advice += " Loops that spin on atomic variables count as busy: a profiler shows them.";
    }
    Some(Finding { rule: "calm", says, advice, weight: 0.0 })
}
