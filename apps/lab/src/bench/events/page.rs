//! The rows as one page that needs nothing else: for each cell a distribution of each mechanism,
//! and the tables.

use std::fmt::Write as _;

use antiphon_report::page;
use antiphon_report::page::curves::{Curve, distribution};
use antiphon_report::page::escape;
use antiphon_report::table::duration;

use super::cases::{Case, Cell};
use super::rows::{Report, Row};
use super::tables;

/// All of it.
pub fn page(report: &Report) -> String {
    let mut body = String::new();
    for rows in report.rows.chunk_by(|one, next| one.cell == next.cell) {
        let cell = &rows[0].cell;
        let curves: Vec<_> = rows.iter().filter(|row| !row.cdf.is_empty()).map(curve).collect();
        // Writing to a string does not fail, here and below.
        let _ = write!(
            body,
            "<h2>{}: {}</h2>\n<p class=faint>{}, of {} trials each</p>\n<figure>\n{}</figure>\n",
            cell.name(),
            escape(&tables::heading(cell)),
            figure(cell),
            rows.iter().map(|row| row.trials).max().unwrap_or(0),
            distribution(&curves, duration),
        );
        for row in rows {
            if let Some(trouble) = &row.trouble {
                let (kind, what) = trouble.json();
                let name = row.subject;
                let _ = writeln!(body, "<p class=faint>{name}: {kind}: {}</p>", escape(what));
            }
        }
    }
    let tables = escape(&tables::text(report, false));
    let _ = writeln!(body, "<h2>Figures</h2>\n<div class=wide><pre>{tables}</pre></div>");
    page::page("antiphon bench events", &body, None)
}

fn curve(row: &Row) -> Curve {
    Curve::of_distribution(row.subject, &row.cdf, !row.ours)
}

/// The name of the figure whose distribution is drawn.
fn figure(cell: &Cell) -> &'static str {
    match cell.case {
        Case::SenderAlone => "What telling costs",
        Case::Broadcast => "When the last of them is back",
        Case::Noise => "The time that the work takes",
        Case::Clock => "Half of the fastest round trip of a trial",
        _ => "The time from the sender to the receiver",
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::{Cell, Wanted};
    use super::super::measure::Figures;
    use super::super::rows::put_together;
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds, Trouble};

    #[test]
    fn each_mechanism_has_a_curve_and_one_that_is_missing_a_reason() {
        let cell = |case| Cell::of(Load::Idle, Wanted { case, waiters: 1 }, &[3], &[1])[0];
        let measured = |subject, case, trouble: Option<Trouble>| Measured {
            cell: cell(case),
            subject,
            figures: match trouble {
                Some(_) => Vec::new(),
                None => vec![Figures { latency_ns: vec![100.0, 2e4, 3e4], ..Figures::default() }],
            },
            others: Vec::new(),
            trouble,
        };
        let missing = Some(Trouble::Missing("a & b".to_owned()));
        let rounds = Rounds {
            subjects: vec!["event"],
            peers: vec!["futex", "io_uring"],
            repetitions: 1,
            seed: 1,
        };
        let measured = [
            measured("event", Case::Parked, None),
            measured("futex", Case::Parked, None),
            measured("io_uring", Case::Parked, missing),
            measured("event", Case::Running, None),
        ];
        let page = page(&put_together(&rounds, 1.0, &measured));
        assert_eq!((page.matches("<svg").count(), page.matches("<polyline").count()), (2, 3));
        assert!(page.contains("<p class=faint>io_uring: skipped: a &amp; b</p>"), "{page}");
        assert!(page.contains("parked: A receiver that has slept for 3 µs, load idle, CPU 1"));
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
