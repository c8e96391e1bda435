//! The tables of `bench serve`.

use antiphon_report::table::{Cell as Field, Table, Tone, duration, si};

use super::cases::{Case, Cell};
use super::rows::{Report, Row};
use crate::bench::ratio::Ratio;
use crate::bench::tables::trouble;

/// All of them.
pub fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    for rows in report.rows.chunk_by(|a, b| a.cell == b.cell) {
        let heading = heading(&rows[0].cell, report.bytes);
        text += &format!("{heading}\n{}\n", table(rows, report).render(colour));
    }
    text + "Medians of repetitions; a ratio is the median of paired ratios. Latencies are from \
            when a request\nwas sent, or due; CPU is that of all threads of the server.\n"
}

/// The heading of a table.
fn heading(cell: &Cell, bytes: usize) -> String {
    let plural = |count| if count == 1 { "" } else { "s" };
    let Cell { load, case, rate, connections, workers } = *cell;
    let what = match case {
        Case::Echo => format!("Echo of {bytes} bytes"),
        Case::Http => "HTTP, kept alive".to_owned(),
    };
    let rate = rate.map_or(String::new(), |rate| format!(", {rate} requests a second"));
    format!(
        "{what}: {connections} connection{}{rate}; {workers} worker{}, load {}",
        plural(connections),
        plural(workers),
        load.name()
    )
}

fn table(rows: &[Row], report: &Report) -> Table {
    let to = format!(">to {}", report.reference.unwrap_or("nothing"));
    let rate = ["server", ">answers/s", ">quartiles", &to, ">95 %"];
    let mut table = Table::new(&[&rate[..], &[">p50", ">p99", &to, ">CPU", &to]].concat());
    for row in rows {
        table.row(line(row));
    }
    table
}

fn line(row: &Row) -> Vec<Field> {
    let name = Field::text(row.subject).tone(if row.ours { Tone::Plain } else { Tone::Faint });
    if row.trouble.is_some() {
        return vec![name, trouble(row.trouble.as_ref())];
    }
    let time = |ns: Option<f64>| Field::number(ns.map_or("-".to_owned(), duration));
    let rate = row.rate.map_or("-".to_owned(), |rate| si(rate.median));
    let quartiles =
        row.rate.map_or(String::new(), |rate| format!("{} – {}", si(rate.p25), si(rate.p75)));
    let [answers, p99, cpu] = row.ratios;
    let interval = answers.and_then(|ratio| ratio.interval).map_or(String::new(), |interval| {
        format!("{:.2} – {:.2}", interval.low95, interval.high95)
    });
    vec![
        name,
        Field::number(rate),
        Field::number(quartiles).tone(Tone::Faint),
        share(answers, row.ours, true),
        Field::number(interval).tone(Tone::Faint),
        time(row.p50_ns),
        time(row.p99_ns),
        share(p99, row.ours, false),
        time(row.cpu_ns),
        share(cpu, row.ours, false),
    ]
}

/// A ratio; of ours, coloured if its interval is on one side of 1.
fn share(ratio: Option<Ratio>, ours: bool, more_is_better: bool) -> Field {
    let Some(ratio) = ratio else { return Field::number("-") };
    let side = ratio.interval.and_then(|interval| match () {
        () if interval.low95 > 1.0 => Some(more_is_better),
        () if interval.high95 < 1.0 => Some(!more_is_better),
        () => None,
    });
    let tone = match side {
        _ if !ours => Tone::Faint,
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Plain,
    };
    Field::number(format!("{:.2}×", ratio.of.median)).tone(tone)
}
