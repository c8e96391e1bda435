//! The report as one self-contained page: for each case and number of hogs, tardiness and fairness
//! over the number of cores, with a curve for each subject; and the tables.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, drawing_of};
use antiphon_report::page::escape;
use antiphon_report::table::{duration, si};
use antiphon_report::words::several;

use super::cases::Placement;
use super::rows::Row;
use super::{colours, tables};
use crate::named::Named as _;

/// Returns the page of `rows`. Rows of a case must be adjacent, and within it those of a number of
/// hogs.
pub fn page(heading: &str, rows: &[Row], coloured: &[colours::Row]) -> String {
    let mut body = format!("<p>{}</p>\n", escape(heading));
    let alike = |one: &Row, next: &Row| (one.case.name, one.hogs) == (next.case.name, next.hogs);
    for alike in rows.chunk_by(alike) {
        let (case, hogs) = (alike[0].case, several(alike[0].hogs as u64, "hog"));
        let about = escape(&format!("{}, {hogs} a core: {}", case.name, case.about));
        // Writing to a string does not fail, here and below.
        let _ = writeln!(body, "<h2>{about}</h2>");
        draw(&mut body, "99 % of timers are at most so late", alike, duration, |row| {
            row.tardiness.p99_us * 1e3
        });
        let index = |index: f64| format!("{index:.3}");
        let what = "Jain's index of CPU time, over players and hogs";
        draw(&mut body, what, alike, index, |row| row.jain_cpu);
    }
    let mut figures = String::new();
    if !rows.is_empty() {
        figures += &tables::text(rows, false);
    }
    if !coloured.is_empty() {
        let _ = writeln!(body, "<h2>{}</h2>", escape(colours::NAME));
        let _ = writeln!(body, "<p class=faint>Events a second, by colours</p>");
        body += &drawing_of("core", &by_colours(coloured), si);
        figures += &colours::text(coloured, false);
    }
    page::with_tables("antiphon sim loop", &body, &figures)
}

fn draw(
    body: &mut String,
    what: &str,
    rows: &[Row],
    words: impl Fn(f64) -> String,
    figure: impl Fn(&Row) -> f64,
) {
    let curves = Curve::by_name(rows, name, |row| Some((row.cores as f64, figure(row))));
    let _ = writeln!(body, "<p class=faint>{what}</p>");
    *body += &drawing_of("core", &curves, words);
}

/// Returns the subject's name, with the placement of players if that is not the default.
fn name(row: &Row) -> String {
    match row.placement {
        Placement::Even => row.subject.name().to_owned(),
        placement => format!("{}, {}", row.subject.name(), placement.name()),
    }
}

fn by_colours(rows: &[colours::Row]) -> Vec<Curve> {
    let name = |row: &colours::Row| several(row.colours as u64, "colour");
    Curve::by_name(rows, name, |row| Some((row.cores as f64, row.ops_per_s)))
}
