//! The report for people: on a terminal, and within the page.

use antiphon_report::table::{Cell, Table, Tone, duration, si};

use super::agree::times;
use super::report::Report;
use super::rows::{Mean, Row, THROUGHPUT};

/// Returns the verdicts, in a few lines.
pub fn verdict(report: &Report) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        text += &format!("{}\n", verdict.says);
        if !verdict.could_help.is_empty() {
            text += &format!("  What could help: {}.\n", verdict.could_help);
        }
    }
    text
}

/// Returns notes on everything that was not examined.
pub fn notes(report: &Report) -> String {
    report.notes().iter().map(|note| format!("{note}\n")).collect()
}

/// Returns all tables.
pub fn tables(report: &Report, colour: bool) -> String {
    let (work, rest): (Vec<_>, Vec<_>) =
        report.rows.iter().partition(|row| row.metric == THROUGHPUT);
    let mut text = format!("Rounds a second\n{}", beside(&work).render(colour));
    if !rest.is_empty() {
        text += "\nWhere threads share CPUs\n";
        text += &other(&rest).render(colour);
    }
    text += "\nGeometric means over locks of predicted over measured\n";
    text + &summary(&report.means).render(colour)
}

/// Returns the rows that differ.
pub fn differences(report: &Report, colour: bool) -> String {
    beside(&report.differences()).render(colour)
}

fn beside(rows: &[&Row]) -> Table {
    let ratio = |ratio: Option<f64>| Cell::number(ratio.map_or(String::new(), times));
    let median = |range: [f64; 3]| range[0];
    Table::of(
        rows,
        &[
            ("case", &|row| Cell::text(row.case.name)),
            (">threads", &|row| Cell::number(row.threads.to_string())),
            ("lock", &|row| Cell::text(row.subject)),
            (">measured", &|row| Cell::known(row.measured.map(median), si)),
            (">simulated", &|row| Cell::known(row.predicted, si)),
            (">to futex, here", &|row| ratio(row.compared.and_then(|of| of.measured).map(median))),
            (">simulated", &|row| ratio(row.compared.and_then(|of| of.predicted))),
            ("", &|row| said(row)),
        ],
    )
}

/// What the figures of a row say of the model.
fn said(row: &Row) -> Cell {
    let compared = row.compared;
    let tone = match compared.map(|compared| compared.says) {
        Some(says) if says.differs() => Tone::Bad,
        _ => Tone::Plain,
    };
    let words = match (&row.trouble, compared) {
        (Some(trouble), _) => format!("failed: {trouble}"),
        (None, Some(compared)) => compared.words(),
        (None, None) => "what others are compared with".to_owned(),
    };
    Cell::text(words).tone(tone)
}

fn other(rows: &[&Row]) -> Table {
    let heads = ["case", ">threads", "lock", "figure", ">measured", ">simulated"];
    let mut table = Table::new(&heads);
    for row in rows {
        let said = |value: f64| match row.metric {
            "hand_over_ns" => duration(value),
            _ => si(value),
        };
        let figure = if row.metric == "hand_over_ns" { "hand-over" } else { "switches/1000" };
        table.row(vec![
            Cell::text(row.case.name),
            Cell::number(row.threads.to_string()),
            Cell::text(row.subject),
            Cell::text(figure),
            Cell::known(row.measured.map(|[median, ..]| median), said),
            Cell::known(row.predicted, said),
        ]);
    }
    table
}

fn summary(means: &[Mean]) -> Table {
    let known = |value| Cell::known(value, |value: f64| format!("{value:.2}"));
    Table::of(
        means,
        &[
            ("case", &|mean| Cell::text(mean.case)),
            (">threads", &|mean| Cell::number(mean.threads.to_string())),
            ("figure", &|mean| Cell::text(mean.metric)),
            (">locks", &|mean| Cell::number(mean.rows.to_string())),
            (">predicted / measured", &|mean| known(mean.ratio)),
            (">least", &|mean| known(mean.range.map(|range| range.0))),
            (">most", &|mean| known(mean.range.map(|range| range.1))),
            ("band", &|mean| band(mean)),
        ],
    )
}

fn band(mean: &Mean) -> Cell {
    let (word, tone) = match mean.holds() {
        Some(true) => ("holds", Tone::Good),
        Some(false) => ("missed", Tone::Bad),
        None => ("not measured", Tone::Plain),
    };
    let band = mean.band.map(|band| format!("±{:.0} %: {word}", band * 100.0));
    Cell::text(band.unwrap_or_default()).tone(tone)
}
