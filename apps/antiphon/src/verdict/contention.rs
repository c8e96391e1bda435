//! A lock that is held for so long that others wait for it.
//!
//! **Threshold**: a tenth of the working time is spent waiting for the lock, and it is held for two
//! fifths of the run or more. Without a profile the time held is not known, and the rule reports
//! the wait alone.
//!
//! **Reason**: a lock that is held most of the time is the program's limit. Its sections run one
//! after the other, whichever lock it is; only fewer or shorter sections, or more locks, help.

use antiphon_report::table::duration;

use super::evidence::{Class, likewise};
use super::{Evidence, Finding, kept, percent};

/// The least share of the working time that is spent waiting for the lock.
pub const LEAST_SHARE: f64 = 0.1;
/// The least share of the run in which the lock is held.
pub const LEAST_HELD: f64 = 0.4;

/// A single section with more than this share of all sections' time is named.
const LONG_PART: f64 = 0.5;

/// Names the place that holds the lock longest, unless the lock is taken through a wrapper.
fn longest_by(class: &Class<'_>) -> String {
    let site = class.held_at();
    if site.caller.is_some() { String::new() } else { format!(", longest by {}", site.label()) }
}

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let long = |class: &Class<'_>| {
        let held = evidence.held(class);
        held.is_none_or(|held| held >= LEAST_HELD) && class.rare_long_waits().is_none()
    };
    let found = evidence.waited_for(LEAST_SHARE).filter(|(_, class)| long(class));
    let found: Vec<_> = found.filter(|(_, class)| !kept::is_kept(evidence, class)).collect();
    let Some((&(share, class), others)) = found.split_first() else { return Vec::new() };
    let mut says = format!(
        "Threads spent {} of their working time waiting for {}, most of it at {}.",
        percent(share),
        class.name(),
        class.waited_at().label(),
    );
    let advice = match evidence.held(class) {
        Some(held) => {
            says += &format!(
                " It is held for {} of the run{} ({} a time at the median, {} at the longest).",
                percent(held.min(1.0)),
                longest_by(class),
                duration(class.hold.p50().unwrap_or(0) as f64),
                duration(class.hold.max_ns as f64),
            );
            if class.longest_hold() > LONG_PART {
                says += " One section makes up most of that.";
            }
            "Its sections are the limit, and another lock changes little: do less in them, take it \
             less often, or split the data among several locks."
        }
        None if evidence.report.run.profile => {
            "How long it is held is not known; antiphon try says whether another lock helps."
        }
        None => {
            "antiphon run --profile says what holds it, antiphon try whether another lock helps."
        }
    };
    says += &likewise(others);
    vec![Finding { rule: "contention", says, advice: advice.to_owned(), weight: share }]
}
