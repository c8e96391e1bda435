//! A lock that is waited for much longer than it is held.
//!
//! **Threshold**: a tenth of the working time is spent waiting for the lock, though it is free for
//! three fifths of the run or more.
//!
//! **Reason**: where sections are short, a wait as long as many sections is not the work of others
//! but the cost of passing the lock on: waiters that must be woken, owners that lost their CPU. A
//! lock that lets waiters spin, or running threads overtake sleeping ones, costs less there; taking
//! it less often costs least.

use antiphon_record::Histogram;
use antiphon_report::table::duration;

use super::contention::{self, LEAST_SHARE};
use super::evidence::{Class, likewise};
use super::{Evidence, Finding, percent};

/// Says how often the lock is taken, if that is so often that it costs as much as the work.
fn often(evidence: &Evidence<'_>, class: &Class<'_>) -> String {
    const LONGEST_S: f64 = 5e-6;
    let between_s = evidence.between_s(class).filter(|&time| time <= LONGEST_S);
    between_s.map_or(String::new(), |time| {
        format!(" It is taken once in {} of CPU time.", duration(time * 1e9))
    })
}

pub fn find(evidence: &Evidence<'_>) -> Vec<Finding> {
    let short = |class: &Class<'_>| {
        !contention::is_limit(evidence, class)
            && evidence.rare_long_waits(class).is_none()
            && evidence.long_section(class).is_none()
    };
    let found: Vec<_> =
        evidence.waited_for(LEAST_SHARE).filter(|(_, class)| short(class)).collect();
    let Some((&(share, class), others)) = found.split_first() else { return Vec::new() };
    let mean = |times: &Histogram| duration(times.sum_ns as f64 / times.count().max(1) as f64);
    let says = format!(
        "Threads spent {} of their working time waiting for {}, most of it at {}, though it is \
         held for {} of the run: a wait takes {} on average, a section {}.{}{}",
        percent(share),
        class.name(),
        class.waited_at().label(),
        percent(evidence.held(class).unwrap_or(0.0)),
        mean(&class.wait),
        mean(&class.hold),
        often(evidence, class),
        likewise(others),
    );
    let advice = "Passing the lock on costs more than the work under it: take it less often \
                  (several items at a time, or a copy for each thread), and measure other locks \
                  with antiphon try.";
    vec![Finding { rule: "convoy", says, advice: advice.to_owned(), weight: share }]
}
