//! The report as one self-contained page: the verdict, where the two worlds differ, and for each
//! case two drawings, measured and simulated, of the work of each lock relative to the futex
//! mutex's.

use std::fmt::Write as _;

use antiphon_report::page::curves::{Curve, drawing};
use antiphon_report::page::{escape, with_tables};

use super::agree::{Compared, RULE, times};
use super::report::Report;
use super::rows::Row;
use super::text;
use super::workload::CASES;

/// Returns the page.
pub fn page(report: &Report) -> String {
    let mut body = String::new();
    for line in report.origin() {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(body, "<p class=faint>{}</p>", escape(&line));
    }
    body += "<h2>Verdict</h2>\n";
    for line in text::verdict(report).lines().chain(text::notes(report).lines()) {
        let _ = writeln!(body, "<p>{}</p>", escape(line));
    }
    let _ = writeln!(body, "<p class=note>{}</p>", escape(RULE));
    let differences = report.differences();
    body += "<h2>Where they differ</h2>\n";
    body += &match differences.len() {
        0 => "<p>Nowhere, by that rule.</p>\n".to_owned(),
        _ => {
            let text = escape(&text::differences(report, false));
            format!("<div class=wide><pre>{text}</pre></div>\n")
        }
    };
    for case in CASES {
        let rows: Vec<_> = report.rows.iter().filter(|row| row.case == case).collect();
        let drawn = [
            ("Measured here", curves(&rows, |of| of.measured.map(|[median, ..]| median))),
            ("Simulated: a model, not a measurement", curves(&rows, |of| of.predicted)),
        ];
        if drawn.iter().all(|(_, curves)| curves.iter().all(|curve| curve.points.len() < 2)) {
            continue;
        }
        let _ = writeln!(body, "<h2>{}: work beside that of the futex mutex</h2>", case.name);
        for (name, curves) in drawn {
            let said = drawing(&curves, times);
            let _ = write!(body, "<p class=faint>{name}</p>\n<figure>\n{said}</figure>\n");
        }
    }
    with_tables("antiphon validate", &body, &text::tables(report, false))
}

/// Returns a curve for each lock.
fn curves(rows: &[&Row], of: fn(&Compared) -> Option<f64>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for row in rows {
        let Some(ratio) = row.compared.as_ref().and_then(of) else { continue };
        let point = (row.threads as f64, ratio);
        match curves.iter_mut().find(|curve| curve.name == row.subject) {
            Some(curve) => curve.points.push(point),
            None => {
                let (name, dashed) = (row.subject.to_owned(), row.subject == super::peer::GLIBC);
                curves.push(Curve { name, points: vec![point], dashed });
            }
        }
    }
    curves
}
