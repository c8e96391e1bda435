//! The verdict of a replay: what the machine is, what limits the program there, and what to do.
//!
//! All of its figures are simulated, and its text says so.

use antiphon_replay::{GLIBC, IDEAL, Row, Verdict};
use antiphon_report::words::several;

use super::{Finding, percent};
use crate::replay::study::{SiteRow, Study, in_words};

/// Threads that wait for a smaller share of their time are not limited by locks.
const LEAST_WAITING: f64 = 0.05;
/// If locks without cost speed the program up by less than this factor, no lock helps.
const LEAST_SPEEDUP: f64 = 1.1;

/// The findings, in the order in which they are to be read.
pub fn of(study: &Study) -> Vec<Finding> {
    let Some(&threads) = study.asked.threads.last() else { return Vec::new() };
    let limit = study.row(GLIBC, threads).and_then(|glibc| limit(study, glibc));
    [limit, Some(lock(study))].into_iter().flatten().collect()
}

/// The machine, in a clause.
fn machine(study: &Study) -> String {
    let machine = &study.asked.machine;
    let (cpus, nodes) = (machine.cores(), machine.topology.nodes());
    format!(
        "{} (simulated: {}, {})",
        machine.name,
        several(u64::from(nodes), "node"),
        several(u64::from(cpus), "CPU"),
    )
}

/// What limits the program with the most threads and glibc's lock.
fn limit(study: &Study, glibc: &Row) -> Option<Finding> {
    let waiting = glibc.wait_share()?;
    let ideal = study.row(IDEAL, glibc.threads).and_then(|row| study.speedup(row));
    let mut says = format!(
        "On {}, with {} and glibc's lock, threads wait {} of their time for locks.",
        machine(study),
        several(glibc.threads as u64, "thread"),
        percent(waiting),
    );
    let first: Option<&SiteRow> = study.sites.first();
    let advice = match ideal {
        _ if waiting < LEAST_WAITING => "Locks do not limit it there.".to_owned(),
        Some(ideal) if ideal < LEAST_SPEEDUP => {
            says += &format!(
                " Locks that cost nothing would make it only {ideal:.2} times as fast: what is \
                 done under the locks limits it."
            );
            sections(first)
        }
        Some(ideal) => {
            says += &format!(
                " Locks that cost nothing would make it {ideal:.2} times as fast: passing them on \
                 limits it."
            );
            sections(first)
        }
        None => sections(first),
    };
    Some(Finding { rule: "limit", says, advice, weight: waiting })
}

/// The advice about sections.
fn sections(first: Option<&SiteRow>) -> String {
    let Some(site) = first else { return "Take locks less often.".to_owned() };
    let name = if site.name.is_empty() { "an unknown site" } else { &site.name };
    match site.half_the_hold.filter(|gain| *gain >= 0.01) {
        Some(gain) => format!(
            "Half as long a section at {name}, which has {} of the waiting, makes it {:.0} % \
             faster.",
            percent(site.wait_share),
            gain * 100.0,
        ),
        None => format!(
            "{name} has {} of the waiting; a shorter section there alone gains nothing.",
            percent(site.wait_share)
        ),
    }
}

/// The lock that the replay recommends.
fn lock(study: &Study) -> Finding {
    let recommendation = &study.recommendation;
    let (said, lock) = in_words(recommendation.verdict);
    let lock = lock.map_or(String::new(), |lock| format!(" {lock}"));
    let sure = recommendation.confidence;
    let sure = sure.map_or(String::new(), |sure| format!(" (confidence: {sure})"));
    let says = match recommendation.verdict {
        Verdict::CannotKnow => format!("No lock is recommended: {}.", recommendation.why),
        _ => format!("Recommended: {said}{lock}{sure}: {}.", recommendation.why),
    };
    let advice = match recommendation.verdict {
        Verdict::Use(GLIBC) | Verdict::NoDifference => "Leave the locks as they are.".to_owned(),
        Verdict::Use(lock) => {
            format!("Measure it where the program runs: antiphon try --lock {lock} -- CMD.")
        }
        Verdict::CannotKnow => "Record more of the program, if locks limit it.".to_owned(),
    };
    Finding { rule: "lock", says, advice, weight: 1.0 }
}
