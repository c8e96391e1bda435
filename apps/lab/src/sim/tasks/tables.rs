//! The tables of `sim tasks`.

use antiphon_report::table::{Cell, Table, duration, si};

use super::cases::Case;
use super::experiment::Figures;
use super::rows::Row;
use super::subjects::Form;
use crate::named::Named as _;

/// Returns a table for each case.
pub fn text(rows: &[Row], colour: bool) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| one.case.name == next.case.name) {
        let table = table(of_case).render(colour);
        text += &format!("{}\n{table}\n", heading(of_case[0].case));
    }
    text + RULE + &legend(rows)
}

/// Returns a legend of the subjects.
fn legend(rows: &[Row]) -> String {
    let mut said = Vec::new();
    for Row { subject, .. } in rows {
        let line = format!("{:<21}{}\n", subject.name, subject.about);
        if subject.form == Form::Ours && !said.contains(&line) {
            said.push(line);
        }
    }
    said.concat()
}

/// The heading of a table.
pub fn heading(case: &Case) -> String {
    let Case { name, about, figure, packets, .. } = case;
    format!("{name}: {about} (published: {figure}, {packets} packets)")
}

const RULE: &str = "\
published        the dissertation's scheduler, with its defects; its figures are to the right
p50 …            of a task, from when it is made ready to its end
busy             the share of the workers' time that is the tasks' own, and the spawners'
push             what making a task ready takes, the mean; retries: how often there was no room
tries, hits      of thieves, a task; far, near: lines that move, a task: from another node, or not
";

fn table(rows: &[Row]) -> Table {
    let time = |ns: f64| Cell::number(duration(ns));
    let each =
        |row: &Row, count: fn(&Figures) -> u64| Cell::number(format!("{:.2}", row.per_task(count)));
    Table::of(
        rows,
        &[
            ("", &|row| Cell::text(row.subject.name)),
            ("form", &|row| Cell::text(row.subject.form.name())),
            (">workers", &|row| Cell::number(row.workers.to_string())),
            (">packets/s", &|row| Cell::number(si(row.ops_per_s()))),
            (">published", &|row| Cell::known(row.published_ops_per_s(), si)),
            (">p50", &|row| time(row.quantile_ns(0.5))),
            (">p99", &|row| time(row.quantile_ns(0.99))),
            (">p99.9", &|row| time(row.quantile_ns(0.999))),
            (">p99.99", &|row| time(row.quantile_ns(0.9999))),
            (">busy", &|row| Cell::number(format!("{:.2}", row.busy()))),
            (">push", &|row| time(row.per_task(|figures| figures.push_ns))),
            (">retries", &|row| each(row, |figures| figures.retries)),
            (">tries", &|row| each(row, |figures| figures.attempts)),
            (">hits", &|row| each(row, |figures| figures.hits)),
            (">far", &|row| each(row, Figures::remote)),
            (">near", &|row| each(row, Figures::local)),
            (">parks", &|row| each(row, |figures| figures.counts.parks)),
        ],
    )
}
