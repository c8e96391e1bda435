//! The tables of `bench events`.

use antiphon_report::table::{Cell as Field, Table, Tone, duration};

use super::cases::{Case, Cell};
use super::rows::{Report, Row};
use crate::bench::neighbours::Load;
use crate::bench::ratio::Ratio;
use crate::bench::tables::trouble;

/// All of them.
pub fn text(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    let same = |a: &Row, b: &Row| group(&a.cell) == group(&b.cell);
    for rows in report.rows.chunk_by(same) {
        let cell = rows[0].cell;
        let table = match cell.case {
            Case::Noise | Case::Clock => machine(rows),
            Case::SenderAlone => alone(rows, report),
            Case::Broadcast => broadcast(rows, report),
            _ => latency(rows, report),
        };
        text += &format!("{}\n{}\n", heading(&cell), table.render(colour));
    }
    text + "Medians of repetitions; a ratio is the median of paired ratios, with the interval that \
            holds\nthe true one in 95 of 100 cases. CPU: of all receivers, and of the sender while \
            it tells. Sleeps:\nof a receiver for an event.\n"
}

/// Cells of one table.
fn group(cell: &Cell) -> (Load, Case, u32, Option<usize>) {
    (cell.load, cell.case, cell.gap_us, cell.target)
}

/// The heading of a table.
pub fn heading(cell: &Cell) -> String {
    let (load, gap) = (cell.load.name(), cell.gap_us);
    let what = match cell.case {
        Case::Running => "Both threads awake, in turn: half a round trip".to_owned(),
        Case::Parked | Case::ParkedIdle => format!("A receiver that has slept for {gap} µs"),
        Case::BusyTarget => "A sleeper whose CPU another thread has".to_owned(),
        Case::SenderAlone => "What telling costs when no thread waits".to_owned(),
        Case::Broadcast => "Several sleepers told at once".to_owned(),
        Case::Noise => "The same work again and again, without any event".to_owned(),
        Case::Clock => "How far the counters of both CPUs are apart".to_owned(),
    };
    let target = cell.target.map_or(String::new(), |cpu| format!(", CPU {cpu}"));
    format!("{what}, load {load}{target}")
}

fn latency(rows: &[Row], report: &Report) -> Table {
    let to = to(report);
    let heads = [
        "mechanism",
        ">p50",
        ">quartiles",
        ">p99",
        &to,
        ">95 %",
        ">best",
        ">95 %",
        ">p99 to best",
        ">sender",
        ">CPU",
        ">sleeps",
    ];
    table(&heads, rows, |row| {
        let [best, second] =
            row.best.map(|best| Ratio::cells(best.map(|(ratio, _)| ratio), row.ours));
        let mut fields = vec![p99(row)];
        fields.extend(Ratio::cells(row.ratios[0], row.ours).into_iter().chain(best));
        fields.extend(second.into_iter().take(1));
        fields.extend([row.sender_ns, row.cpu_ns_per_event].map(maybe));
        fields.push(number(row.sleeps_per_event));
        fields
    })
}

fn alone(rows: &[Row], report: &Report) -> Table {
    let to = to(report);
    table(&["mechanism", ">sender", ">quartiles", ">p99", &to, ">95 %"], rows, |row| {
        let [ratio, interval] = Ratio::cells(row.ratios[0], row.ours);
        vec![p99(row), ratio, interval]
    })
}

fn broadcast(rows: &[Row], report: &Report) -> Table {
    let to = to(report);
    let heads = [
        ">waiters",
        "mechanism",
        ">last",
        ">quartiles",
        ">σ",
        &to,
        ">95 %",
        ">σ",
        ">95 %",
        ">sender",
        ">CPU",
    ];
    table(&heads, rows, |row| {
        let mut fields = vec![maybe(row.sigma_ns)];
        fields.extend(row.ratios.into_iter().flat_map(|ratio| Ratio::cells(ratio, row.ours)));
        fields.extend([row.sender_ns, row.cpu_ns_per_event].map(maybe));
        fields
    })
}

fn machine(rows: &[Row]) -> Table {
    let heads = ["", ">p50", ">quartiles", ">p99", ">σ", ">ahead", ">at most by"];
    table(&heads, rows, |row| {
        let (offset, doubt) = row.clock.unzip();
        let [sigma, offset, doubt] = [row.sigma_ns, offset, doubt].map(maybe);
        vec![p99(row), sigma, offset, doubt]
    })
}

/// A line for each row: its name, its leading figure and the others, or why there are none.
fn table(heads: &[&str], rows: &[Row], others: impl Fn(&Row) -> Vec<Field>) -> Table {
    let mut table = Table::new(heads);
    for row in rows {
        let mut fields = Vec::new();
        if row.cell.case == Case::Broadcast {
            fields.push(Field::number(row.cell.waiters.to_string()));
        }
        fields.push(name(row));
        if row.trouble.is_some() {
            fields.push(trouble(row.trouble.as_ref()));
        } else {
            fields.extend(lead(row));
            fields.extend(others(row));
        }
        table.row(fields);
    }
    table
}

fn to(report: &Report) -> String {
    format!(">to {}", report.reference.unwrap_or("nothing"))
}

fn name(row: &Row) -> Field {
    Field::text(row.subject).tone(if row.ours { Tone::Plain } else { Tone::Faint })
}

fn lead(row: &Row) -> [Field; 2] {
    let quartiles = row.leads[0]
        .map_or("-".to_owned(), |lead| format!("{} – {}", duration(lead.p25), duration(lead.p75)));
    let median = maybe(row.leads[0].map(|lead| lead.median));
    [median, Field::number(quartiles).tone(Tone::Faint)]
}

/// The second figure, where it is a percentile.
fn p99(row: &Row) -> Field {
    maybe(row.leads[1].map(|lead| lead.median))
}

fn maybe(ns: Option<f64>) -> Field {
    Field::number(ns.map_or("-".to_owned(), duration))
}

fn number(value: Option<f64>) -> Field {
    Field::number(value.map_or("-".to_owned(), |value| format!("{value:.2}")))
}
