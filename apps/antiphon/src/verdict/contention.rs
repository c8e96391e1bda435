//! A lock that is held for so long that others wait for it.
//!
//! **Threshold**: a tenth of the working time is spent waiting for the lock, and it is held for two
//! fifths of the run or more, or its sections take a third of the program's CPU time or more: where
//! other programs have the CPUs, a lock is held for less of the run than it would be without them.
//! If its waits are rare and long, for one place, [`long_sections`](super::long_sections) has it.
//! Without a profile the time held is not known, and the rule reports the wait alone.
//!
//! **Reason**: a lock that is held most of the time is the program's limit. Its sections run one
//! after the other, whichever lock it is; only fewer or shorter sections, or more locks, help.

use antiphon_report::table::duration;

use super::evidence::{Class, LEAST_SECTIONS, likewise};
use super::{Evidence, Finding, kept, percent, starved};

/// The least share of the working time that is spent waiting for the lock.
pub const LEAST_SHARE: f64 = 0.1;
/// The least share of the run in which the lock is held.
const LEAST_HELD: f64 = 0.4;

/// The least time of the sections, for the program's CPU time, if owners sleep in them.
const OWNERS_SLEEP: f64 = 1.5;
/// A single section with more than this share of all sections' time is named.
const LONG_PART: f64 = 0.5;

/// Names the place that holds the lock longest, unless the lock is taken through a wrapper, and
/// the lengths of the holds there.
fn longest_by(class: &Class<'_>) -> String {
    let Some(row) = class.longest_held() else { return String::new() };
    let (by, hold) = match row.site.caller {
        Some(_) => (String::new(), &class.hold),
        None => (format!(", longest by {}", row.site.label()), &row.hold),
    };
    format!(
        "{by} ({} a time at the median, {} at the longest)",
        duration(hold.p50().unwrap_or(0) as f64),
        duration(hold.max_ns as f64),
    )
}

/// Returns whether the sections of such a lock are the program's limit, as far as is known.
pub fn is_limit(evidence: &Evidence<'_>, class: &Class<'_>) -> bool {
    let Some(held) = evidence.held(class) else { return true };
    held >= LEAST_HELD || evidence.sections(class).is_some_and(|share| share >= LEAST_SECTIONS)
}

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let long = |class: &Class<'_>| {
        is_limit(evidence, class)
            && evidence.rare_long_waits(class).is_none()
            && evidence.long_section(class).is_none()
    };
    let found = evidence.waited_for(LEAST_SHARE).filter(|(_, class)| long(class));
    let found = found.filter(|(_, class)| !kept::is_kept(evidence, class));
    let found: Vec<_> =
        found.filter(|(_, class)| !starved::is_starved(evidence, &class.rows)).collect();
    let Some((&(share, class), others)) = found.split_first() else { return Vec::new() };
    let sections = evidence.sections(class).unwrap_or(0.0);
    let mut says = format!(
        "Threads spent {} of their working time waiting for {}, most of it at {}.",
        percent(share),
        class.name(),
        class.waited_at().label(),
    );
    let advice = match evidence.held(class) {
        Some(held) => {
            says += &format!(
                " It is held for {} of the run{}.",
                percent(held.min(1.0)),
                longest_by(class),
            );
            // Sections in which owners sleep are no CPU time.
            if (LEAST_SECTIONS..=1.0).contains(&sections) {
                let share = percent(sections);
                says += &format!(" Its sections take {share} of the program's CPU time.");
            } else if sections > OWNERS_SLEEP {
                says += " Owners sleep in its sections, or wait there for a device.";
            }
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
    // What the sections limit is the program's time, even if few threads wait.
    let weight = share.max(sections.min(1.0));
    vec![Finding { rule: "contention", says, advice: advice.to_owned(), weight }]
}
