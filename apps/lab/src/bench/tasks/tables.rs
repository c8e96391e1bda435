//! The tables of `bench tasks`.

use antiphon_report::table::{Cell as Field, Table, Tone, duration};

use super::cases::{Case, Cell};
use super::rows::{Report, Row};
use crate::bench::ratio::Ratio;
use crate::bench::tables::trouble;

/// All of them.
pub fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    for rows in report.rows.chunk_by(|a, b| a.cell == b.cell) {
        text += &format!("{}\n{}\n", heading(&rows[0].cell), table(rows).render(colour));
    }
    for (case, names) in &report.absent {
        text += &format!("No {}, so not measured: {}\n", case.name(), names.join(", "));
    }
    text + "Medians of repetitions; a ratio is the median of paired ratios, with the interval that \
            holds\nthe true one in 95 of 100 cases; less is better. CPU: of all threads.\n"
}

/// The heading of a table.
fn heading(cell: &Cell) -> String {
    let (load, batch) = (cell.load.name(), cell.batch);
    let workers = match cell.workers {
        1 => "1 worker".to_owned(),
        many => format!("{many} workers"),
    };
    let what = match cell.case {
        Case::SpawnJoin => format!("Spawn, run and join: tasks that do nothing, {batch} at once"),
        Case::ForkJoin => "Fork and join: Fibonacci numbers, a task for each call".to_owned(),
        Case::Idle => {
            return format!("Memory of a task that has not run, of {batch}; load {load}");
        }
        Case::Yield => format!("Yield: {batch} tasks in turn"),
        Case::Channel => format!("A channel: messages to another task, room for {batch}"),
        Case::Across => {
            format!("A channel: messages from one worker's task to another's, room for {batch}")
        }
        Case::Select => format!("A select: messages of two tasks to another, room for {batch}"),
        Case::Parked => {
            return format!("Memory of a task that waits, of {batch}; load {load}");
        }
    };
    format!("{what}; {workers}, load {load}")
}

fn table(rows: &[Row]) -> Table {
    let to = rows.iter().find_map(|row| row.ratio).map_or("nothing", |(_, peer)| peer);
    let to = format!(">to {to}");
    let heads: &[&str] = match rows[0].cell.case {
        case if case.is_memory() => &["runtime", ">bytes", ">quartiles", &to, ">95 %"],
        Case::Channel | Case::Across | Case::Select => {
            &["runtime", ">a message", ">quartiles", &to, ">95 %", ">CPU"]
        }
        Case::Yield => &["runtime", ">a yield", ">quartiles", &to, ">95 %", ">CPU"],
        _ => &["runtime", ">a task", ">quartiles", &to, ">95 %", ">CPU"],
    };
    let mut table = Table::new(heads);
    for row in rows {
        let tone = if row.ours { Tone::Plain } else { Tone::Faint };
        let mut fields = vec![Field::text(row.subject).tone(tone)];
        if row.trouble.is_some() {
            fields.push(trouble(row.trouble.as_ref()));
        } else {
            fields.extend(lead(row));
            fields.extend(Ratio::cells(row.ratio.map(|(ratio, _)| ratio), row.ours));
            fields.extend(row.cpu_ns.map(|ns| Field::number(duration(ns))));
        }
        table.row(fields);
    }
    table
}

fn lead(row: &Row) -> [Field; 2] {
    let Some(lead) = row.lead else { return ["-", ""].map(Field::number) };
    let shown = |value| match row.cell.case {
        case if case.is_memory() => format!("{value:.0}"),
        _ => duration(value),
    };
    let quartiles = format!("{} – {}", shown(lead.p25), shown(lead.p75));
    [Field::number(shown(lead.median)), Field::number(quartiles).tone(Tone::Faint)]
}
