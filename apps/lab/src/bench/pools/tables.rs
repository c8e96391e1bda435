//! The tables of pools.

use antiphon_report::table::{Cell as Field, Table, Tone, duration, si};

use super::rows::{Conditions, Report, Row};
use crate::bench::ratio::Ratio;
use crate::bench::tables::trouble;

/// All of them, and what is said of them.
pub fn text<C: Conditions>(report: &Report<C>, colour: bool, about: &str) -> String {
    let mut text = String::new();
    for rows in report.rows.chunk_by(|a, b| a.cell == b.cell) {
        text += &format!("{}\n{}\n", rows[0].cell, table(rows, report).render(colour));
    }
    text + about + RULE
}

const RULE: &str = "\
Medians of repetitions; a ratio is the median of paired ratios. CPU is that of all threads but for
what spawners waited. No room: tasks that were run at once for want of it.
";

fn table<C: Conditions>(rows: &[Row<C>], report: &Report<C>) -> Table {
    let to = format!(">to {}", report.reference.unwrap_or("nothing"));
    let ramp = rows[0].part.is_some();
    let (rate, last) = if ramp {
        (">done in time /s", [">due /s", ">backlog", ""])
    } else {
        (">tasks/s", [">no room", ">looks", ">steals"])
    };
    let heads = ["subject", rate, ">quartiles", &to, ">p50", ">p99", ">p99.9", ">p99.99"];
    let cpu = [">CPU/task", &to];
    let mut table = Table::new(&[&heads[..], &cpu, &last].concat());
    for row in rows {
        table.row(line(row));
    }
    table
}

fn line<C>(row: &Row<C>) -> Vec<Field> {
    let step = row.part.map_or(String::new(), |part| format!(" at {part}×"));
    let name = Field::text(format!("{}{step}", row.subject));
    let name = name.tone(if row.ours { Tone::Plain } else { Tone::Faint });
    if row.trouble.is_some() {
        return vec![name, trouble(row.trouble.as_ref())];
    }
    let number = |value: Option<f64>| Field::number(value.map_or("-".to_owned(), si));
    let quartiles =
        row.rate.map_or(String::new(), |rate| format!("{} – {}", si(rate.p25), si(rate.p75)));
    let seen = &row.latency;
    let mut fields = vec![name, number(row.rate.map(|rate| rate.median))];
    fields.push(Field::number(quartiles).tone(Tone::Faint));
    fields.push(share(row.ratios[0], row, true));
    fields
        .extend([seen.p50, seen.p99, seen.p999, seen.p9999].map(|ns| Field::number(duration(ns))));
    let cpu = row.cpu_us.map_or("-".to_owned(), |cpu| duration(cpu.median * 1e3));
    fields.extend([Field::number(cpu), share(row.ratios[3], row, false)]);
    if row.part.is_some() {
        fields.extend([number(Some(seen.offered_per_s)), number(Some(seen.backlog))]);
    } else {
        fields.extend(row.counted.map(number));
    }
    fields
}

/// A ratio; of ours, coloured if its interval is on one side of 1.
fn share<C>(ratio: Option<Ratio>, row: &Row<C>, more_is_better: bool) -> Field {
    let Some(ratio) = ratio else { return Field::number("-") };
    let sides = ratio.interval.map(|interval| (interval.high95 < 1.0, interval.low95 > 1.0));
    let tone = match sides {
        _ if !row.ours => Tone::Faint,
        Some((true, _)) => {
            if more_is_better {
                Tone::Bad
            } else {
                Tone::Good
            }
        }
        Some((_, true)) => {
            if more_is_better {
                Tone::Good
            } else {
                Tone::Bad
            }
        }
        _ => Tone::Plain,
    };
    Field::number(format!("{:.2}×", ratio.of.median)).tone(tone)
}
