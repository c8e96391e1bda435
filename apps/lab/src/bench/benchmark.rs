//! The skeleton of a family of benchmarks. A family says what is measured and what a row has; the
//! turns of subjects, rows, ratios, tables and the report are made here.
//!
//! ```text
//!   family: cells, repeat ──► turns ──► repetitions ──► family: summary ──► rows ─┬► JSON
//!                                                                                 └► tables
//! ```

use std::process::ExitCode;

use antiphon_report::failure::Failure;
use antiphon_report::table::{Table, colour_stdout};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::columns::Columns;
use super::report::{Beside, Row, extend, failures};
use super::rounds::{MeasuredOf, Measurement, mean};
use super::settings::{Printed, Settings};

/// A row of a family.
pub type RowOf<B> = Row<<B as Measurement>::Cell, <B as Benchmark>::Summary>;

/// The columns of a table of a family.
pub type ColumnsOf<B> = Columns<<B as Measurement>::Cell, <B as Benchmark>::Summary>;

/// A family of benchmarks.
pub trait Benchmark: Measurement<Cell: Serialize> {
    /// What a row has of the repetitions of a subject: medians, quartiles, ratios. Its fields are
    /// the keys of the row.
    type Summary: Serialize;

    /// The summaries of a subject in a cell: one, or one for each part of the cell.
    fn summaries(&self, one: &Beside<'_, Self::Cell, Self::Figures>) -> Vec<Self::Summary>;

    /// The keys of a row that say under what conditions it is: those of its cell, as a rule.
    fn conditions(&self, row: &RowOf<Self>) -> Value {
        json!(row.cell)
    }

    /// The keys of the report beside its rows and the seed.
    fn body(&self, _rows: &[RowOf<Self>]) -> Value {
        Value::Null
    }

    /// Whether the rows of two cells are in one table.
    fn is_together(&self, one: &Self::Cell, other: &Self::Cell) -> bool {
        one == other
    }

    /// The heading of a table.
    fn heading(&self, cell: &Self::Cell) -> String {
        cell.to_string()
    }

    /// The columns of a table.
    fn columns(&self, rows: &[RowOf<Self>]) -> ColumnsOf<Self>;

    /// The table of rows that are together.
    fn table(&self, rows: &[RowOf<Self>]) -> Table {
        self.columns(rows).table(rows)
    }

    /// The lines below a table.
    fn notes(&self, _rows: &[RowOf<Self>]) -> String {
        String::new()
    }

    /// The lines below all tables.
    fn about(&self, rows: &[RowOf<Self>]) -> String;

    /// The failures, in one line.
    fn trouble(&self, rows: &[RowOf<Self>]) -> Option<String> {
        failures(rows)
    }
}

/// Makes rows of the measurements: those of a cell together.
pub fn rows<B: Benchmark>(family: &B, measured: &[MeasuredOf<B>]) -> Vec<RowOf<B>> {
    Beside::all(family.turns().0, measured)
        .flat_map(|one| {
            let summaries = family.summaries(&one).into_iter();
            summaries.map(move |summary| one.row(summary))
        })
        .collect()
}

/// The rows for scripts.
pub fn objects<B: Benchmark>(family: &B, rows: &[RowOf<B>]) -> Vec<Value> {
    rows.iter().map(|row| row.object(family.conditions(row))).collect()
}

/// The tables, and what is said of them.
pub fn text<B: Benchmark>(family: &B, rows: &[RowOf<B>], colour: bool) -> String {
    let mut text = String::new();
    for rows in rows.chunk_by(|a, b| family.is_together(&a.cell, &b.cell)) {
        let table = family.table(rows).render(colour);
        text += &format!("{}\n{table}\n{}", family.heading(&rows[0].cell), family.notes(rows));
    }
    text + &family.about(rows)
}

/// Measures and prints.
///
/// # Errors
///
/// If this command can't start processes; what went wrong with a subject.
pub fn run<B: Benchmark>(family: &B, settings: &Settings) -> Result<ExitCode, Failure> {
    print(family, &rows(family, &family.measure()?), settings)
}

/// Prints the report of these rows.
///
/// # Errors
///
/// What went wrong with a subject.
pub fn print<B: Benchmark>(
    family: &B,
    rows: &[RowOf<B>],
    settings: &Settings,
) -> Result<ExitCode, Failure> {
    let mut body = Map::new();
    body.insert("rows".to_owned(), json!(objects(family, rows)));
    body.insert("seed".to_owned(), json!(family.turns().0.seed));
    extend(&mut body, family.body(rows));
    settings.print(Printed {
        json: Value::Object(body),
        text: text(family, rows, colour_stdout()),
        others_cpus: mean(rows.iter().filter_map(|row| row.others_cpus)),
        trouble: family.trouble(rows),
    })
}
