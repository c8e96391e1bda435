//! Tables of rows: each column has a head and a function that returns a row's field under it.

use antiphon_report::stats::Quartiles;
use antiphon_report::table::{Cell as Field, Table, Tone, duration};

use super::ratio::{Better, Ratio};
use super::report::Row;
use super::rounds::Trouble;

/// The columns of a table. Columns of conditions come first; a failed row has these, and then the
/// reason why it has no figures.
pub struct Columns<C, S> {
    /// Head of the columns of ratios.
    to: String,
    conditions: Vec<Column<C, S>>,
    figures: Vec<Column<C, S>>,
}

struct Column<C, S> {
    head: String,
    field: Box<Says<C, S>>,
}

/// Returns a row's field in a column.
type Says<C, S> = dyn Fn(&Row<C, S>) -> Field;

impl<C, S> Columns<C, S> {
    /// The columns of a table whose ratios are to `peer`.
    pub fn to(peer: Option<&str>) -> Self {
        let to = format!(">to {}", peer.unwrap_or("nothing"));
        Self { to, conditions: Vec::new(), figures: Vec::new() }
    }

    /// The columns of a table of these rows, which share one peer.
    pub fn of(rows: &[Row<C, S>]) -> Self {
        Self::to(rows.iter().find_map(|row| row.peer))
    }

    /// Adds a column for a condition.
    pub fn condition(mut self, head: &str, field: impl Fn(&Row<C, S>) -> Field + 'static) -> Self {
        self.conditions.push(Column { head: head.to_owned(), field: Box::new(field) });
        self
    }

    /// Adds the column of subjects' names.
    pub fn subject(self, head: &str) -> Self {
        self.condition(head, |row| named(row.subject, row.ours))
    }

    /// Adds a column of figures.
    pub fn field(mut self, head: &str, field: impl Fn(&Row<C, S>) -> Field + 'static) -> Self {
        self.figures.push(Column { head: head.to_owned(), field: Box::new(field) });
        self
    }

    /// Adds a column of numbers, formatted by `show`.
    pub fn number<V: Into<Option<f64>>>(
        self,
        head: &str,
        show: impl Fn(f64) -> String + 'static,
        of: impl Fn(&S) -> V + 'static,
    ) -> Self {
        self.field(head, move |row| maybe(of(&row.summary).into(), &show))
    }

    /// Adds a column of times in nanoseconds.
    pub fn time<V: Into<Option<f64>>>(self, head: &str, of: impl Fn(&S) -> V + 'static) -> Self {
        self.number(head, duration, of)
    }

    /// Adds a column of medians and one of quartiles.
    pub fn quartiles(
        self,
        head: &str,
        show: impl Fn(f64) -> String + Copy + 'static,
        of: impl Fn(&S) -> Option<Quartiles> + Copy + 'static,
    ) -> Self {
        let median = move |summary: &S| of(summary).map(|of| of.median);
        self.number(head, show, median).field(">quartiles", move |row| {
            let ends = |of: Quartiles| format!("{} – {}", show(of.p25), show(of.p75));
            Field::number(of(&row.summary).map_or(String::new(), ends)).tone(Tone::Faint)
        })
    }

    /// Adds a column of ratios.
    pub fn ratio(self, better: Better, of: impl Fn(&S) -> Ratio + 'static) -> Self {
        let head = self.to.clone();
        self.field(&head, move |row| of(&row.summary).field(row.ours, better))
    }

    /// Adds a column of the 95 % intervals of ratios.
    pub fn interval(self, of: impl Fn(&S) -> Ratio + 'static) -> Self {
        self.field(">95 %", move |row| of(&row.summary).interval_field())
    }

    /// Builds the table of these rows.
    pub fn table(&self, rows: &[Row<C, S>]) -> Table {
        self.table_with(rows, trouble)
    }

    /// Builds the table of these rows; `trouble` states why a row has no figures.
    pub fn table_with(&self, rows: &[Row<C, S>], trouble: fn(&Trouble) -> Field) -> Table {
        let all = self.conditions.iter().chain(&self.figures);
        let mut table = Table::new(&all.map(|column| &*column.head).collect::<Vec<_>>());
        for row in rows {
            let mut fields: Vec<_> =
                self.conditions.iter().map(|column| (column.field)(row)).collect();
            match &row.trouble {
                Some(why) => fields.push(trouble(why)),
                None => fields.extend(self.figures.iter().map(|column| (column.field)(row))),
            }
            table.row(fields);
        }
        table
    }
}

/// A subject's name; a peer's is in a fainter tone.
pub fn named(name: impl Into<String>, ours: bool) -> Field {
    Field::text(name).tone(if ours { Tone::Plain } else { Tone::Faint })
}

/// A number formatted by `show`, or a dash.
pub fn maybe(value: Option<f64>, show: impl Fn(f64) -> String) -> Field {
    Field::known(value, show)
}

/// States why there are no figures.
pub fn trouble(trouble: &Trouble) -> Field {
    match trouble {
        Trouble::Missing(what) => Field::text(format!("skipped: {what}")).tone(Tone::Faint),
        Trouble::Failed(what) => Field::text(format!("failed: {what}")).tone(Tone::Bad),
    }
}
