//! The report for people: on a terminal, and within the page.

use antiphon_report::table::{Cell, Table, Tone, duration, si};

use super::agree::times;
use super::report::Report;
use super::rows::{Mean, Row, THROUGHPUT};

const NOTHING: &str = "–";

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
    let mut table = Table::new(&[
        "case",
        ">threads",
        "lock",
        ">measured",
        ">simulated",
        ">to futex, here",
        ">simulated",
        "",
    ]);
    for row in rows {
        let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), times);
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
        let measured = compared.and_then(|compared| compared.measured);
        table.row(vec![
            Cell::text(row.case.name),
            Cell::number(row.threads.to_string()),
            Cell::text(row.subject),
            Cell::number(row.measured.map_or(NOTHING.to_owned(), |[median, ..]| si(median))),
            Cell::number(row.predicted.map_or(NOTHING.to_owned(), si)),
            Cell::number(ratio(measured.map(|[median, ..]| median))),
            Cell::number(ratio(compared.and_then(|compared| compared.predicted))),
            Cell::text(words).tone(tone),
        ]);
    }
    table
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
            Cell::number(row.measured.map_or(NOTHING.to_owned(), |[median, ..]| said(median))),
            Cell::number(row.predicted.map_or(NOTHING.to_owned(), said)),
        ]);
    }
    table
}

fn summary(means: &[Mean]) -> Table {
    let mut table = Table::new(&[
        "case",
        ">threads",
        "figure",
        ">locks",
        ">predicted / measured",
        ">least",
        ">most",
        "band",
    ]);
    let number = |value: Option<f64>| value.map_or(NOTHING.to_owned(), |v| format!("{v:.2}"));
    for mean in means {
        let (word, tone) = match mean.holds() {
            Some(true) => ("holds", Tone::Good),
            Some(false) => ("missed", Tone::Bad),
            None => ("not measured", Tone::Plain),
        };
        let band = mean.band.map(|band| format!("±{:.0} %: {word}", band * 100.0));
        table.row(vec![
            Cell::text(mean.case),
            Cell::number(mean.threads.to_string()),
            Cell::text(mean.metric),
            Cell::number(mean.rows.to_string()),
            Cell::number(number(mean.ratio)),
            Cell::number(number(mean.range.map(|range| range.0))),
            Cell::number(number(mean.range.map(|range| range.1))),
            Cell::text(band.unwrap_or_default()).tone(tone),
        ]);
    }
    table
}
