//! The dissertation's measurements, on the machine that `epyc-2x64c` models.

use super::subjects::Form;

/// Figures by number of domains: millions of packets per second, unless stated otherwise.
struct Known {
    case: &'static str,
    subject: &'static str,
    points: &'static [(usize, f64)],
}

/// The source of the figures.
pub const SOURCE: &str = "Modelski's dissertation (Cambridge, 2022), figures of chapter 7";

static KNOWN: [Known; 7] = [
    Known { case: "general", subject: "fifo", points: &[(5, 0.33), (80, 1.45)] },
    Known { case: "general", subject: "lifo", points: &[(5, 0.33), (20, 1.5), (115, 0.9)] },
    Known { case: "large", subject: "lifo", points: &[(15, 0.2), (115, 0.2)] },
    Known { case: "cache", subject: "fifo", points: &[(110, 1.65)] },
    Known { case: "cache", subject: "lifo", points: &[(110, 2.05)] },
    Known { case: "one-bimodal", subject: "lifo", points: &[(115, 0.81)] },
    Known { case: "one-bimodal", subject: "domainslib", points: &[(85, 0.58), (115, 0.37)] },
];

/// Figures of options: p99 from the beginning, in seconds, by the number of domains.
static OPTIONS: [Known; 2] = [
    Known { case: "options", subject: "fifo", points: &[(5, 0.42), (115, 0.18)] },
    Known { case: "options", subject: "lifo", points: &[(5, 9.0), (115, 0.42)] },
];

/// Returns the published 99th percentile of a case and a policy, in nanoseconds.
pub fn p99_ns(case: &str, subject: &str, form: Form, workers: usize) -> Option<f64> {
    let known = OPTIONS.iter().find(|known| (known.case, known.subject) == (case, subject))?;
    let here = known.points.iter().find(|(domains, _)| *domains == workers)?;
    (form == Form::Published).then_some(here.1 * 1e9)
}

/// Returns the published points of a case and a policy; Domainslib is in our form only.
pub fn of(case: &str, subject: &str, form: Form) -> &'static [(usize, f64)] {
    let here = |known: &&Known| known.case == case && known.subject == subject;
    match KNOWN.iter().find(here) {
        Some(known) if form == Form::Published || subject == "domainslib" => known.points,
        _ => &[],
    }
}
