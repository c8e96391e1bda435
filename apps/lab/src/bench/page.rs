//! A report as one self-contained page: for each cell the distributions of its subjects, and the
//! tables.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, distribution};
use antiphon_report::page::escape;
use antiphon_report::stats::Below;

use super::report::Row;

/// Draws the distributions of the rows of a cell, and states why a row has none.
pub fn distributions<C, S>(
    title: &str,
    caption: &str,
    rows: &[Row<C, S>],
    of: fn(&S) -> &[Below],
    show: impl Fn(f64) -> String,
) -> String {
    let drawn = rows.iter().filter(|row| !of(&row.summary).is_empty());
    let curve = |row: &Row<C, S>| Curve::of_distribution(row.subject, of(&row.summary), !row.ours);
    let curves: Vec<_> = drawn.map(curve).collect();
    let mut text = format!(
        "<h2>{}</h2>\n<p class=faint>{caption}</p>\n<figure>\n{}</figure>\n",
        escape(title),
        distribution(&curves, show),
    );
    for row in rows {
        if let Some(trouble) = &row.trouble {
            let (kind, what) = trouble.json();
            // Writing to a string does not fail.
            let _ = writeln!(text, "<p class=faint>{}: {kind}: {}</p>", row.subject, escape(what));
        }
    }
    text
}

/// Returns the page of a verb, with its drawings and tables.
pub fn page(verb: &str, drawings: &str, tables: &str) -> String {
    page::with_tables(&format!("antiphon bench {verb}"), drawings, tables)
}
