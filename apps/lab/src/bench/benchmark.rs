//! The skeleton of a family of benchmarks.
//!
//! ```text
//!   family: cells, repeat ──► turns ──► repetitions ──► family: summary ──► rows ─┬► JSON
//!                                                                                 └► tables
//! ```
//!
//! | a family gives | by |
//! |---|---|
//! | its subjects, its cells, and one repetition of a subject in a cell | [`Measurement`] |
//! | the figures of a row, from the repetitions of a subject | [`Benchmark::summaries`] |
//! | the columns of its tables, and an explanation | [`Benchmark::columns`], [`Benchmark::about`] |
//!
//! Everything else has a default. The keys of a row for scripts are the fields of its cell and of
//! its summary, as serde writes them.

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
    /// The figures of a row: medians, quartiles and ratios of repetitions. Its fields are keys of
    /// the row.
    type Summary: Serialize;

    /// Summarises a subject in a cell: one summary, or one for each part of the cell.
    fn summaries(&self, one: &Beside<'_, Self::Cell, Self::Figures>) -> Vec<Self::Summary>;

    /// Returns the keys of a row's conditions, which are present even without figures: those of its
    /// cell.
    fn conditions(&self, row: &RowOf<Self>) -> Value {
        json!(row.cell)
    }

    /// Returns the keys of the report besides its rows and the seed.
    fn body(&self, _rows: &[RowOf<Self>]) -> Value {
        Value::Null
    }

    /// Returns whether the rows of two cells belong in one table.
    fn is_together(&self, one: &Self::Cell, other: &Self::Cell) -> bool {
        one == other
    }

    /// The heading of a table.
    fn heading(&self, cell: &Self::Cell) -> String {
        cell.to_string()
    }

    /// The columns of a table.
    fn columns(&self, rows: &[RowOf<Self>]) -> ColumnsOf<Self>;

    /// Builds the table of rows that belong together.
    fn table(&self, rows: &[RowOf<Self>]) -> Table {
        self.columns(rows).table(rows)
    }

    /// Returns the lines below a table.
    fn notes(&self, _rows: &[RowOf<Self>]) -> String {
        String::new()
    }

    /// Returns the lines below all tables.
    fn about(&self, rows: &[RowOf<Self>]) -> String;

    /// Returns the failures as one line, if there are any.
    fn trouble(&self, rows: &[RowOf<Self>]) -> Option<String> {
        failures(rows)
    }
}

/// Makes rows of the measurements; the rows of a cell are adjacent.
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

/// The tables, and the explanation below them.
pub fn text<B: Benchmark>(family: &B, rows: &[RowOf<B>], colour: bool) -> String {
    let mut text = String::new();
    for rows in rows.chunk_by(|a, b| family.is_together(&a.cell, &b.cell)) {
        let table = family.table(rows).render(colour);
        text += &format!("{}\n{table}\n{}", family.heading(&rows[0].cell), family.notes(rows));
    }
    text + &family.about(rows)
}

/// Measures the family and prints its report.
///
/// # Errors
///
/// If this command can't start processes, or a subject failed.
pub fn run<B: Benchmark>(family: &B, settings: &Settings) -> Result<ExitCode, Failure> {
    print(family, &rows(family, &family.measure()?), settings)
}

/// Prints the report of these rows.
///
/// # Errors
///
/// The failure of a subject.
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

#[cfg(test)]
mod tests {
    use std::fmt;

    use serde::Serialize;

    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::ratio::{Better, Ratio};
    use crate::bench::report::Lead;
    use crate::bench::rounds::{Cell, Outcome, Repeated, Rounds};

    #[derive(Clone, Copy, PartialEq, Serialize)]
    struct Place {
        place: u32,
    }

    impl Cell for Place {
        fn load(&self) -> Load {
            Load::Idle
        }
    }

    impl fmt::Display for Place {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "Place {}", self.place)
        }
    }

    #[derive(Serialize)]
    struct Figures {
        #[serde(flatten)]
        lead: Lead,
        #[serde(flatten)]
        ratio: Ratio,
    }

    /// A family whose subjects take as many nanoseconds as their names have letters.
    struct Letters(Rounds, [Place; 2]);

    impl Measurement for Letters {
        type Cell = Place;
        type Figures = f64;

        fn turns(&self) -> (&Rounds, &[Place]) {
            (&self.0, &self.1)
        }

        fn repeat(&self, cell: Place, subject: &'static str, _counts: bool) -> Repeated<f64> {
            match (subject, cell.place) {
                ("other", 2) => Ok(Outcome::Missing("not here".to_owned())),
                _ => Ok(Outcome::Figures(subject.len() as f64)),
            }
        }
    }

    impl Benchmark for Letters {
        type Summary = Figures;

        fn summaries(&self, one: &Beside<'_, Place, f64>) -> Vec<Figures> {
            vec![Figures { lead: one.lead("ns", |ns| *ns), ratio: one.ratio("ratio", |ns| *ns) }]
        }

        fn columns(&self, rows: &[RowOf<Self>]) -> ColumnsOf<Self> {
            let columns = Columns::of(rows).subject("name").time(">time", |of| of.lead.median());
            columns.ratio(Better::Less, |of| of.ratio)
        }

        fn about(&self, _rows: &[RowOf<Self>]) -> String {
            "Letters.\n".to_owned()
        }
    }

    #[test]
    fn a_family_has_rows_and_tables_of_what_it_gives() {
        let (subjects, peers) = (vec!["subject"], vec!["other", "one"]);
        let rounds = Rounds { subjects, peers, repetitions: 2, ..Rounds::default() };
        let family = Letters(rounds, [1, 2].map(|place| Place { place }));
        let Ok(measured) = family.measure() else { panic!("nothing is started") };
        let rows = rows(&family, &measured);
        let mut objects = objects(&family, &rows);
        // The activity of other processes is not under test.
        objects[0]["others_cpus"].take();
        let all = json!({
            "subject": "subject", "peer": "other", "ours": true, "place": 1, "repetitions": 2,
            "others_cpus": null, "ns": 7.0, "p25": 7.0, "p75": 7.0, "ratio": 1.4,
            "ratio_p25": 1.4, "ratio_p75": 1.4, "ratio_low95": null, "ratio_high95": null,
        });
        assert_eq!(objects[0], all);
        let missing = json!({
            "subject": "other", "peer": "other", "ours": false, "place": 2, "repetitions": 0,
            "skipped": "not here",
        });
        assert_eq!(objects[4], missing);
        let text = text(&family, &rows, false);
        assert!(
            text.starts_with("Place 1\nname        time  to other\nsubject  7.00 ns"),
            "{text}"
        );
        assert!(text.contains("other    skipped: not here\n") && text.ends_with("Letters.\n"));
        assert_eq!(family.trouble(&rows), None);
    }
}
