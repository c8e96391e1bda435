//! `sim events --figures`: the figures of the Nemo paper, drawn again from the model.
//!
//! | module | has |
//! |---|---|
//! | [`list`] | the figures, with what the document's text says of each |
//! | [`page`] | the page |

mod list;
mod page;

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::file::OutputFile;
use antiphon_report::progress::Progress;
use antiphon_report::table::{Cell, Table, colour_stdout};
use antiphon_sim::known;
use serde_json::{Value, json};

use self::list::{Compared, FIGURES, Figure, Here, Line, X64_GHZ};
use super::cases::Case;
use super::experiment::Setting;
use super::rows::Row;
use super::subjects;
use crate::sim::report::print;

/// The conditions that all figures have in common.
#[derive(Clone, Copy)]
pub struct Conditions {
    pub seed: u64,
    pub rounds: u32,
    pub gap_ns: u64,
}

/// The rows of all figures, each simulated once.
struct Rows(Vec<(&'static str, Row)>);

/// Simulates what the figures show, and prints the comparison.
///
/// # Errors
///
/// Waiters that are never woken, which is a defect; if the page or stdout can't be written.
pub fn run(
    conditions: Conditions,
    html: Option<OutputFile>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let rows = Rows::simulated(conditions)?;
    let text = || table(&rows).render(false);
    print(
        as_json,
        (html, || page::page(&rows, &text())),
        || body(conditions, &rows),
        || format!("{HEADING}\n\n{}", table(&rows).render(colour_stdout())),
    )
}

/// Simulates what the figures show, and writes their page.
///
/// # Errors
///
/// As [`run`].
pub fn draw(html: OutputFile) -> Result<(), Failure> {
    let rows = Rows::simulated(Conditions { seed: 1, rounds: ROUNDS, gap_ns: GAP_NS })?;
    let table = table(&rows).render(false);
    html.write(&page::page(&rows, &table))
}

/// The number of rounds, and the time between them, of a page that other commands draw.
const ROUNDS: u32 = 20;
const GAP_NS: u64 = 400_000;

const HEADING: &str =
    "Simulated (a model, not a measurement), beside what the text of the Nemo paper says";

impl Rows {
    fn simulated(conditions: Conditions) -> Result<Self, Failure> {
        let Conditions { seed, rounds, gap_ns } = conditions;
        let mut progress = Progress::new(FIGURES.len());
        let mut rows = Self(Vec::new());
        for figure in &FIGURES {
            let machine = &known(figure.machine).expect("a preset").machine;
            let setting = Setting { machine, seed, rounds, gap_ns };
            let waiters = machine.cores() as usize - 1;
            let case =
                if figure.broadcast { Case::Broadcast(waiters) } else { Case::Unicast(waiters) };
            for &(name, delivery) in figure.lines {
                if rows.find(figure, (name, delivery)).is_none() {
                    let subject = subjects::named(name, machine)?[0];
                    rows.0.push((figure.machine, Row::of(&setting, subject, case, delivery)?));
                }
            }
            progress.step(&format!("figure {}", figure.number));
        }
        Ok(rows)
    }

    fn find(&self, figure: &Figure, (name, delivery): Line) -> Option<&Row> {
        let found = self.0.iter().find(|(machine, row)| {
            let broadcast = matches!(row.case, Case::Broadcast(_));
            *machine == figure.machine
                && broadcast == figure.broadcast
                && row.subject.name == name
                && row.delivery.unwrap_or_default() == delivery
        });
        found.map(|(_, row)| row)
    }

    fn row(&self, figure: &Figure, line: Line) -> &Row {
        self.find(figure, line).expect("a line of the figure")
    }

    /// The model's figure for a statement of the document.
    fn value(&self, figure: &Figure, here: Here) -> f64 {
        let pair = |one, other| [one, other].map(|line| self.row(figure, line));
        let ratio = |[one, other]: [f64; 2]| one / other;
        match here {
            Here::Mean(one, other) => ratio(pair(one, other).map(|row| row.latency.mean)),
            Here::Median(one, other) => ratio(pair(one, other).map(|row| row.latency.p50)),
            Here::Sigma(one, other) => {
                ratio(pair(one, other).map(|row| row.sigma_ns.unwrap_or_default()))
            }
            Here::Cycles(one, other) => {
                let [one, other] = pair(one, other).map(|row| row.latency.mean);
                (one - other) * X64_GHZ
            }
        }
    }
}

impl Here {
    const fn unit(self) -> &'static str {
        match self {
            Self::Mean(..) | Self::Median(..) | Self::Sigma(..) => "times",
            Self::Cycles(..) => "cycles",
        }
    }
}

fn statements() -> impl Iterator<Item = (&'static Figure, &'static Compared)> {
    FIGURES.iter().flat_map(|figure| figure.compared.iter().map(move |one| (figure, one)))
}

fn table(rows: &Rows) -> Table {
    let mut table = Table::new(&[">figure", "machine", "what", ">document", ">simulated"]);
    for (figure, one) in statements() {
        let value = rows.value(figure, one.here);
        let digits = if value < 10.0 { 2 } else { 0 };
        let document = if one.document.is_empty() { "-" } else { one.document };
        table.row(vec![
            Cell::number(figure.number.to_string()),
            Cell::text(figure.machine),
            Cell::text(one.what),
            Cell::number(document),
            Cell::number(format!("{value:.digits$} {}", one.here.unit())),
        ]);
    }
    table
}

fn body(conditions: Conditions, rows: &Rows) -> Value {
    let Conditions { seed, rounds, gap_ns } = conditions;
    let row = |(figure, one): (&Figure, &Compared)| {
        json!({
            "model": true, "figure": figure.number, "machine": figure.machine, "what": one.what,
            "document": one.document, "value": rows.value(figure, one.here),
            "unit": one.here.unit(),
        })
    };
    json!({
        "simulated": { "seed": seed, "rounds": rounds, "gap_us": gap_ns / 1_000 },
        "rows": statements().map(row).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line of a figure and of its statements is there, and no figure of the model is without
    /// meaning.
    #[test]
    fn each_figure_of_the_document_is_drawn_beside_its_values() {
        let rows = Rows::simulated(Conditions { seed: 1, rounds: 1, gap_ns: 100_000 });
        let rows = rows.unwrap_or_else(|failure| panic!("{failure:?}"));
        for (figure, one) in statements() {
            let value = rows.value(figure, one.here);
            assert!(value.is_finite() && value > 0.0, "figure {}: {}", figure.number, one.what);
        }
        let page = page::page(&rows, &table(&rows).render(false));
        for number in [3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20] {
            assert!(page.contains(&format!("<h2>Figure {number}")), "{number}");
        }
        assert_eq!(page.matches("<svg").count(), FIGURES.len());
        assert!(page.contains("document: condition variable with kick"));
    }
}
