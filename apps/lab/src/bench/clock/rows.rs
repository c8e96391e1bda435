//! The values of a row of a subject, and its columns.

use antiphon_report::table::{Cell as Field, si};
use serde::Serialize;
use serde_json::{Value, json};

use super::measure::Figures;
use super::{Cell, Plan, described, heading, reference};
use crate::bench::benchmark::{Benchmark, ColumnsOf, RowOf};
use crate::bench::columns::Columns;
use crate::bench::ratio::{Better, Ratio};
use crate::bench::report::{Beside, Lead};

/// The values of a row: medians, and the ratio to the subject's reference.
#[derive(Serialize)]
pub struct Summary {
    /// Time that a thread takes for an operation.
    #[serde(flatten)]
    pub lead: Lead,
    /// Operations of all threads, per second.
    pub ops_per_s: Option<f64>,
    pub aborts_per_kop: Option<f64>,
    /// Name of the subject that it is compared with.
    pub reference: &'static str,
    /// The ratio of times; none for the reference itself.
    #[serde(flatten)]
    pub ratio: Ratio,
}

impl Summary {
    /// Summarises the repetitions of a subject.
    pub fn of(one: &Beside<'_, Cell, Figures>) -> Self {
        let lead = one.lead("ns_per_op", |figures| figures.ns_per_op);
        let reference = reference(one.subject());
        let other = one.other(reference).filter(|_| reference != one.subject());
        Self {
            ops_per_s: lead.median().map(|ns| one.cell().threads as f64 * 1e9 / ns),
            lead,
            aborts_per_kop: one.median(|figures| figures.aborts_per_kop),
            reference,
            ratio: one.ratio_to(other, "ratio", |figures| figures.ns_per_op),
        }
    }
}

impl Benchmark for Plan {
    type Summary = Summary;

    fn summaries(&self, one: &Beside<'_, Cell, Figures>) -> Vec<Summary> {
        vec![Summary::of(one)]
    }

    fn body(&self, _rows: &[RowOf<Self>]) -> Value {
        json!({ "clock": described(&self.clock) })
    }

    fn is_together(&self, one: &Cell, other: &Cell) -> bool {
        one.load == other.load
    }

    fn heading(&self, cell: &Cell) -> String {
        format!("{}, load {}\n", heading(&self.clock), cell.load)
    }

    fn columns(&self, rows: &[RowOf<Self>]) -> ColumnsOf<Self> {
        Columns::of(rows)
            .condition(">threads", |row| Field::number(row.cell.threads.to_string()))
            .subject("subject")
            .quartiles(">ns each", |ns| format!("{ns:.1}"), |of| of.lead.of)
            .number(">ops/s", si, |of| of.ops_per_s)
            .field(">ratio", |row| row.summary.ratio.field(row.ours, Better::Less))
            .interval(|of| of.ratio)
            .field("to", |row| {
                Field::text(row.summary.ratio.median().map_or("-", |_| row.summary.reference))
            })
            .number(">aborts/kop", |aborts| format!("{aborts:.2}"), |of| of.aborts_per_kop)
    }

    fn about(&self, _rows: &[RowOf<Self>]) -> String {
        "Medians of repetitions; a ratio is the median of paired ratios, less is better.\n"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds};

    #[test]
    fn ratios_are_of_pairs_and_the_reference_has_none() {
        let measured = |subject, ns: &[f64]| {
            let figures = |&ns_per_op: &f64| Figures { ns_per_op, aborts_per_kop: 2.0 };
            let cell = Cell { load: Load::Idle, threads: 2 };
            Measured::of(cell, subject, ns.iter().map(figures).collect())
        };
        let all = [
            measured("shared", &[10.0, 40.0, 20.0]),
            measured("ordo", &[5.0, 8.0, 10.0]),
            measured("tl2-ordo", &[1.0; 3]),
        ];
        let rounds = Rounds::default();
        let rows: Vec<_> = Beside::all(&rounds, &all).map(|one| Summary::of(&one)).collect();
        let ratios: Vec<_> = rows.iter().map(|row| row.ratio.median()).collect();
        assert_eq!(ratios, [None, Some(0.5), None]);
        assert_eq!((rows[1].lead.median(), rows[1].ops_per_s), (Some(8.0), Some(0.25e9)));
        assert_eq!(rows[1].ratio.interval, None);
    }
}
