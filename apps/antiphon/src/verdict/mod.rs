//! The verdict of a report: the few sentences that a reader can act on, computed from the evidence
//! below them.
//!
//! A rule is one file. It has a threshold, a reason, and two small programs as tests
//! (`tests/programs/verdict`): one that shows the defect, and one that looks like it and does not.
//!
//! | rule | finds |
//! |---|---|
//! | [`deadlock`] | threads that wait for each other at the end of the run |
//! | [`kept`] | a lock that was never released, while others waited for it in vain |
//! | [`starved`] | a writer that waits while readers come and go |
//! | [`missed`] | waits that miss their notifications |
//! | [`lost`] | waits that missed their notification, and lasted to the end of a run that hung |
//! | [`order`] | locks that were taken in both orders |
//! | [`contention`] | a lock that is held for so long that others wait for it |
//! | [`convoy`] | a lock that is waited for much longer than it is held |
//! | [`long_sections`] | a lock that one place keeps for long each time |
//! | [`preempted`] | a lock whose owner does not run while others wait |
//! | [`unrelated`] | a lock that many functions take, which may guard unrelated data |
//! | [`writers_only`] | a readers-writer lock that no thread reads |
//! | [`barrier`] | threads that wait for the slowest at a barrier |
//! | [`c_library`] | waits for locks of the C library itself |
//! | [`herd`] | notifications that wake many threads for one |
//! | [`short_waits`] | waits for a condition that cost as much as the work |
//! | [`vain`] | notifications that find no waiter |
//! | [`trylock`] | threads that try a lock until they get it |
//! | [`polling`] | threads that sleep for short times, again and again |
//! | [`timed`] | threads that wait for a condition with short deadlines, again and again |
//! | [`crowding`] | more threads that want to run than CPUs |
//! | [`busy_machine`] | CPUs that other programs had, while threads of this one were ready |
//! | [`short_lives`] | threads that live for a short time, one after the other |
//! | [`system_time`] | CPU time that the kernel uses for the program's calls |
//! | [`gil`] | threads that wait for CPython's global interpreter lock |
//! | [`idle`] | threads that wait for work, which is no contention |
//! | [`unreached`] | waits that a preloaded library can't do anything about |
//! | [`calm`] | nothing of that: what the program spends its time on |
//!
//! [`replay`] has the verdict of a replay.

mod barrier;
mod busy_machine;
mod c_library;
mod calm;
mod condition;
mod contention;
mod convoy;
mod crowding;
mod deadlock;
mod evidence;
mod gil;
mod herd;
mod idle;
mod kept;
mod long_sections;
mod lost;
mod missed;
mod order;
mod polling;
mod preempted;
pub mod replay;
mod short_lives;
mod short_waits;
mod starved;
mod system_time;
mod timed;
mod trylock;
mod unreached;
mod unrelated;
mod vain;
mod writers_only;

use antiphon_report::page::escape;
use antiphon_report::table::printable;
use antiphon_report::words::wrapped;
use serde_json::{Value, json};

use crate::run::summary::Report;
pub use evidence::Evidence;

/// A finding of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The fact, with its figures.
    pub says: String,
    /// A remedy, or the statement that there is none.
    pub advice: String,
    /// The share of the program's time that the finding is about, from 0 to 1; defects of
    /// correctness are above 1.
    pub weight: f64,
}

/// A rule: returns its findings in the evidence.
type Rule = fn(&Evidence<'_>) -> Vec<Finding>;

const RULES: [Rule; 27] = [
    deadlock::find,
    kept::find,
    starved::find,
    missed::find,
    lost::find,
    order::find,
    contention::find,
    convoy::find,
    long_sections::find,
    preempted::find,
    unrelated::find,
    writers_only::find,
    barrier::find,
    c_library::find,
    herd::find,
    short_waits::find,
    vain::find,
    trylock::find,
    polling::find,
    timed::find,
    crowding::find,
    busy_machine::find,
    short_lives::find,
    system_time::find,
    gil::find,
    idle::find,
    unreached::find,
];

/// The width of a verdict's text, in columns.
pub const COLUMNS: usize = 100;

/// The weight of a defect that makes a program stop, whatever its time is spent on.
const STOPS: f64 = 3.0;
/// The weight of a defect that may make a program stop.
const MAY_STOP: f64 = 2.0;

/// The findings of a report, the most important first. There is at least one, if anything was
/// recorded.
pub fn of(report: &Report) -> Vec<Finding> {
    let evidence = Evidence::new(report);
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| rule(&evidence)).collect();
    findings.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    findings.extend(calm::find(&evidence, &findings));
    findings
}

/// The findings as paragraphs of lines that fit a terminal, up to `most` of them.
pub fn text(findings: &[Finding], most: usize) -> String {
    let mut out = String::new();
    for finding in findings.iter().take(most) {
        let text = printable(&format!("{} {}", finding.says, finding.advice));
        out += &format!("\n{}\n", wrapped(&text, COLUMNS));
    }
    let more = findings.len().saturating_sub(most);
    if more > 0 {
        out += &format!("… and {more} more findings: --wide or --report F.json has them\n");
    }
    out
}

/// The findings as paragraphs of a page.
pub fn html(findings: &[Finding]) -> String {
    let paragraph = |finding: &Finding| {
        let (says, advice) = (escape(&finding.says), escape(&finding.advice));
        format!("<p class=verdict>{says} <em>{advice}</em></p>\n")
    };
    findings.iter().map(paragraph).collect()
}

/// The findings in a JSON report.
pub fn json(findings: &[Finding]) -> Value {
    let object = |finding: &Finding| {
        json!({
            "rule": finding.rule, "says": finding.says, "advice": finding.advice,
            "weight": finding.weight,
        })
    };
    findings.iter().map(object).collect()
}

/// The text with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// A share in words.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "under 0.1 %".to_owned(),
        percent if percent < 3.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}
