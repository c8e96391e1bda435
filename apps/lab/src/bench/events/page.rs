//! The report as one self-contained page: for each cell, a distribution of each mechanism, and the
//! tables.

use antiphon_report::table::duration;

use super::Plan;
use super::cases::{Case, Cell};
use super::rows::Row;
use super::tables::heading;
use crate::bench::{benchmark, page};

/// Returns the whole page.
pub fn page(plan: &Plan, rows: &[Row]) -> String {
    let drawings: String = rows
        .chunk_by(|one, next| one.cell == next.cell)
        .map(|rows| {
            let cell = &rows[0].cell;
            let title = format!("{}: {}", cell.name(), heading(cell));
            let trials = rows.iter().map(|row| row.summary.trials).max().unwrap_or(0);
            let caption = format!("{}, of {trials} trials each", figure(cell));
            page::distributions(&title, &caption, rows, |of| &of.cdf, duration)
        })
        .collect();
    page::page("events", &drawings, &benchmark::text(plan, rows, false))
}

/// Returns the name of the figure whose distribution is drawn.
fn figure(cell: &Cell) -> &'static str {
    match cell.case {
        Case::SenderAlone => "Cost of a notification",
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
    use super::*;
    use crate::bench::neighbours::Load;
    use crate::bench::rounds::{Measured, Rounds, Trouble};
    use crate::ticks::Ticks;

    #[test]
    fn each_mechanism_has_a_curve_and_one_that_is_missing_a_reason() {
        let cell = |case| Cell::of(Load::Idle, Wanted { case, waiters: 1 }, &[3], &[1])[0];
        let measured = |subject, case| {
            let latency_ns = vec![100.0, 2e4, 3e4];
            let figures = vec![Figures { latency_ns, ..Figures::default() }];
            Measured::of(cell(case), subject, figures)
        };
        let missing = Some(Trouble::Missing("a & b".to_owned()));
        let rounds = Rounds {
            subjects: vec!["event"],
            peers: vec!["futex", "io_uring"],
            ..Rounds::default()
        };
        let all = [
            measured("event", Case::Parked),
            measured("futex", Case::Parked),
            Measured {
                trouble: missing,
                ..Measured::of(cell(Case::Parked), "io_uring", Vec::new())
            },
            measured("event", Case::Running),
        ];
        let ticks = Ticks::calibrate();
        let plan = Plan { cells: Vec::new(), rounds, trials: 3, seconds: 1.0, ticks };
        let page = page(&plan, &benchmark::rows(&plan, &all));
        assert_eq!((page.matches("<svg").count(), page.matches("<polyline").count()), (2, 3));
        assert!(page.contains("<p class=faint>io_uring: skipped: a &amp; b</p>"), "{page}");
        assert!(page.contains("parked: A receiver that has slept for 3 µs, load idle, CPU 1"));
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
