//! The tables of `sim events`.

use antiphon_report::table::{Cell, Table, duration};
use antiphon_report::words::several;

use super::cases::Case;
use super::rows::Row;

/// Returns a table for each case.
pub fn text(rows: &[Row], colour: bool) -> String {
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| one.case == next.case) {
        let case = of_case[0].case;
        let table = match case {
            Case::Unicast(_) => unicast(of_case),
            Case::Broadcast(_) => broadcast(of_case),
        };
        text += &format!("{}\n{}\n", heading(case), table.render(colour));
    }
    text + RULE
}

/// The heading of a table.
pub fn heading(case: Case) -> String {
    let waiters = several(case.waiters() as u64, "waiter");
    match case {
        Case::Unicast(_) => format!("unicast: {waiters}, each notified alone"),
        Case::Broadcast(_) => format!("{case}: {waiters} notified at once"),
    }
}

const RULE: &str = "\
ipi, message  until the handler runs, or the action; all others until the waiting thread does
to ipi        the mean, to that of an interrupt
last, σ       of a round: when the last is notified, and how far apart all are; medians of rounds
";

fn unicast(rows: &[Row]) -> Table {
    let heads =
        ["", ">min", ">p25", ">p50", ">p75", ">p99", ">mean", ">to ipi", ">sender", "what it is"];
    let mut table = Table::new(&heads);
    for row in rows {
        let of = &row.latency;
        let mut cells = vec![Cell::text(row.name())];
        cells.extend([of.min, of.p25, of.p50, of.p75, of.p99, of.mean].map(time));
        cells.extend([to_ipi(row, rows), maybe(row.sender_ns), Cell::text(row.subject.about)]);
        table.row(cells);
    }
    table
}

fn broadcast(rows: &[Row]) -> Table {
    let heads = ["", ">min", ">p50", ">mean", ">to ipi", ">last", ">σ", ">sender", "what it is"];
    let mut table = Table::new(&heads);
    for row in rows {
        let of = &row.latency;
        let mut cells = vec![Cell::text(row.name())];
        cells.extend([of.min, of.p50, of.mean].map(time));
        cells.push(to_ipi(row, rows));
        cells.extend([row.last_ns, row.sigma_ns, row.sender_ns].map(maybe));
        cells.push(Cell::text(row.subject.about));
        table.row(cells);
    }
    table
}

fn to_ipi(row: &Row, rows: &[Row]) -> Cell {
    let ipi = rows.iter().find(|other| other.subject.name == "ipi");
    let ipi = ipi.filter(|ipi| !std::ptr::eq(*ipi, row));
    Cell::known(ipi, |ipi| format!("{:.1}×", row.latency.mean / ipi.latency.mean))
}

fn time(ns: f64) -> Cell {
    Cell::number(duration(ns))
}

fn maybe(ns: Option<f64>) -> Cell {
    Cell::known(ns, duration)
}
