//! `sim events --parts`: what each part of the cost contributes to a mechanism's mean, as the
//! difference to the same machine without that part. Where one thing follows the other, the parts
//! add up; where they overlap, as in a broadcast, they need not.

use antiphon_report::failure::Failure;
use antiphon_report::table::{Cell, Table, duration};
use antiphon_sim::Part;
use serde_json::{Value, json};

use super::cases::Case;
use super::experiment::Setting;
use super::rows::Row;
use super::tables;

/// The parts of a row's mean, in nanoseconds.
pub struct Parts(Vec<(Part, f64)>);

impl Parts {
    /// Simulates the row again without each part.
    ///
    /// # Errors
    ///
    /// If a waiter is not woken.
    pub fn of(setting: &Setting<'_>, row: &Row) -> Result<Self, Failure> {
        let part = |part| {
            let without = Row::without(
                setting,
                row.subject,
                row.case,
                row.delivery.unwrap_or_default(),
                Some(part),
            )?;
            Ok((part, row.latency.mean - without.latency.mean))
        };
        Part::ALL.into_iter().map(part).collect::<Result<_, _>>().map(Self)
    }

    /// What no part explains.
    fn rest(&self, mean: f64) -> f64 {
        mean - self.0.iter().map(|(_, ns)| ns).sum::<f64>()
    }

    /// Returns the object for scripts.
    pub fn object(&self, mean: f64) -> Value {
        let mut object: serde_json::Map<_, _> =
            self.0.iter().map(|(part, ns)| (part.name().to_owned(), json!(ns))).collect();
        object.insert("rest".to_owned(), json!(self.rest(mean)));
        Value::Object(object)
    }
}

/// Returns a table of the parts for each case.
pub fn text(rows: &[(Row, Parts)], colour: bool) -> String {
    let case = |(row, _): &(Row, Parts)| -> Case { row.case };
    let mut text = String::new();
    for of_case in rows.chunk_by(|one, next| case(one) == case(next)) {
        let names = Part::ALL.map(|part| format!(">{}", part.name()));
        let mut heads = vec!["", ">mean"];
        heads.extend(names.iter().map(String::as_str));
        heads.push(">rest");
        let mut table = Table::new(&heads);
        for (row, parts) in of_case {
            let mut cells = vec![Cell::text(row.name()), time(row.latency.mean)];
            cells.extend(parts.0.iter().map(|&(_, ns)| time(ns)));
            cells.push(time(parts.rest(row.latency.mean)));
            table.row(cells);
        }
        text += &format!("{}\n{}\n", tables::heading(case(&of_case[0])), table.render(colour));
    }
    text + RULE
}

fn time(ns: f64) -> Cell {
    let text = match ns.round() {
        0.0 => "-".to_owned(),
        below if below < 0.0 => format!("-{}", duration(-below)),
        above => duration(above),
    };
    Cell::number(text)
}

const RULE: &str = "\
source, way, handling  of the interrupt: its sender, between the CPUs, until the handler runs
lines, atomics         lines that move between CPUs; exchanges of lines at hand, and fences
calls, scheduler       system calls; Linux's scheduler, or the instructions of a kernel's paths
idle, rest             the end of an idle state; what is left, such as accesses that hit
";
