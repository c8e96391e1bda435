//! Rare and long waits for a lock that one place keeps for long each time.
//!
//! **Threshold**: a tenth of the working time is spent waiting for the lock, and most of that in
//! waits of a millisecond and more, fewer than one in a hundred acquisitions; at one call site the
//! lock was held three times or more, for a millisecond or more at the median, and in all for a
//! tenth of these long waits or more. Only a profile knows.
//!
//! **Reason**: an owner that loses its CPU in a short section does so rarely, and anywhere. Where
//! half of the sections are long, it is the section: most of its work needs no lock.

use antiphon_report::table::{count, duration};

use super::contention::LEAST_SHARE;
use super::evidence::likewise;
use super::{Evidence, Finding, percent, starved};

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let found: Vec<_> = evidence
        .waited_for(LEAST_SHARE)
        .filter(|(_, class)| evidence.long_section(class).is_some())
        .filter(|(_, class)| !starved::is_starved(evidence, &class.rows))
        .collect();
    let Some((&(share, class), others)) = found.split_first() else { return Vec::new() };
    let Some(row) = evidence.long_section(class) else { return Vec::new() };
    let says = format!(
        "Threads spent {} of their working time waiting for {}, most of it at {}: {} holds it for \
         {} at the median, {} times.{}",
        percent(share),
        class.name(),
        class.waited_at().label(),
        row.holder(),
        duration(row.hold.p50().unwrap_or(0) as f64),
        count(row.hold.count()),
        likewise(others),
    );
    let advice = "Do less there with the lock held: prepare what is needed before, and wait for \
                  devices and times without it. Another lock changes little.";
    vec![Finding { rule: "long-sections", says, advice: advice.to_owned(), weight: share }]
}
