//! The report as one self-contained page: the distributions of each case, with a curve for each
//! mechanism, and the tables.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, distribution};
use antiphon_report::page::escape;
use antiphon_report::stats::Below;
use antiphon_report::table::duration;

use super::rows::Row;
use super::subjects::System;
use super::tables;

/// Returns the page of `rows`. Rows of a case must be adjacent. Curves of a program that is the
/// kernel are dashed.
pub fn page(heading: &str, rows: &[Row]) -> String {
    let mut body = format!("<p>{}</p>\n", escape(heading));
    for of_case in rows.chunk_by(|one, next| one.case == next.case) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(body, "<h2>{}</h2>", tables::heading(of_case[0].case));
        let curves = |cdf: fn(&Row) -> &[Below]| {
            let curve = |row: &Row| {
                let dashed = row.subject.system != System::Linux;
                Curve::of_distribution(&row.name(), cdf(row), dashed)
            };
            distribution(&of_case.iter().map(curve).collect::<Vec<_>>(), duration)
        };
        let _ = writeln!(body, "<p class=faint>From the send until a waiter is notified</p>");
        body += &curves(|row| &row.latency.cdf);
        if of_case[0].sigma_ns.is_some() {
            let _ = writeln!(body, "<p class=faint>σ of the waiters of a round</p>");
            body += &curves(|row| &row.sigma_cdf);
        }
    }
    page::with_tables("antiphon sim events", &body, &tables::text(rows, false))
}
