//! The report as one self-contained page: for each case, curves over the number of workers beside
//! the dissertation's measurements, and the tables.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, drawing};
use antiphon_report::page::escape;
use antiphon_report::table::{duration, si};

use super::rows::Row;
use super::subjects::Form;
use super::{figures, tables};

/// Returns the page of `rows`. Rows of a case must be adjacent, and within it those of a subject.
pub fn page(heading: &str, rows: &[Row]) -> String {
    let mut body = format!("<p>{}</p>\n", escape(heading));
    for of_case in rows.chunk_by(|one, next| one.case.name == next.case.name) {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(body, "<h2>{}</h2>", escape(&tables::heading(of_case[0].case)));
        let _ = writeln!(body, "<p class=faint>Packets a second</p>");
        let measured = of_case.chunk_by(same).filter_map(|rows| measured(&rows[0]));
        let curves: Vec<_> = curves(of_case, Row::ops_per_s).into_iter().chain(measured).collect();
        body += &drawing(&curves, si);
        if curves.iter().any(|curve| curve.dashed) {
            let _ = writeln!(body, "<p class=faint>Dashed, measured: {}</p>", figures::SOURCE);
        }
        let _ = writeln!(body, "<p class=faint>99 % of tasks end within</p>");
        body += &drawing(&self::curves(of_case, |row| row.quantile_ns(0.99)), duration);
        let _ = writeln!(body, "<p class=faint>Looks into others' queues, a task</p>");
        let tries = |row: &Row| row.per_task(|figures| figures.attempts);
        body += &drawing(&self::curves(of_case, tries), |value| format!("{value:.1}"));
    }
    page::with_tables("antiphon sim tasks", &body, &tables::text(rows, false))
}

fn same(one: &Row, next: &Row) -> bool {
    std::ptr::eq(one.subject, next.subject)
}

fn name(row: &Row) -> String {
    match row.subject.form {
        Form::Ours => row.subject.name.to_owned(),
        Form::Published => format!("{}, published", row.subject.name),
    }
}

fn curves(rows: &[Row], figure: impl Fn(&Row) -> f64) -> Vec<Curve> {
    Curve::by_name(rows, name, |row| Some((row.workers as f64, figure(row))))
}

/// Returns the dissertation's measurements of the row's subject.
fn measured(row: &Row) -> Option<Curve> {
    let known = figures::of(row.case.name, row.subject.name, row.subject.form);
    let points = known.iter().map(|&(domains, mega)| (domains as f64, mega * 1e6)).collect();
    let name = format!("{}, measured", row.subject.name);
    (!known.is_empty()).then_some(Curve { name, points, dashed: true })
}
