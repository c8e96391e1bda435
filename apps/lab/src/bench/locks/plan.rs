//! The measured cells of locks: a cell is a load, a case and a number of threads.

use std::fmt;

use serde::Serialize;

use super::measure::{Case, Figures, JUSTINE_LIMIT_S, JUSTINE_THREADS, Order};
use super::subjects::Family;
use crate::bench::neighbours::Load;
use crate::bench::repeat::repeat;
use crate::bench::rounds::{self, Measurement, Repeated, Rounds};
use crate::ticks::Ticks;

/// Length of a repetition in seconds, if none is asked for and no crowd needs more.
pub const SECONDS: f64 = 0.2;

/// The conditions of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cell {
    /// The other load on the machine.
    pub load: Load,
    /// The workload.
    pub case: Case,
    /// Percentage of critical sections that only read; `None` for cases without a mixture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u32>,
    /// Number of threads that use the lock.
    pub threads: usize,
}

/// The work of threads: a case, and its mixture of readers and writers.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The case.
    pub case: Case,
    /// Percentage of critical sections that only read, as in [`Cell::reads`].
    pub reads: Option<u32>,
}

/// The measurements to take.
pub struct Plan {
    /// The family of the locks.
    pub family: Family,
    /// The cells, in this order.
    pub cells: Vec<Cell>,
    /// The subjects that take turns in each cell.
    pub rounds: Rounds,
    /// Length of a repetition in seconds, if it was asked for.
    pub seconds: Option<f64>,
    /// The rate of the counter that times waits.
    pub ticks: Ticks,
}

/// Returns the cells of these loads, workloads and thread counts.
pub fn cells(loads: &[Load], workloads: &[Workload], threads: &[usize]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &load in loads {
        for &Workload { case, reads } in workloads {
            // Readers that never leave need a writer beside them.
            let counts = match case {
                Case::Justine => vec![JUSTINE_THREADS],
                Case::Continuous => threads.iter().copied().filter(|&count| count > 1).collect(),
                _ if case.contended() => threads.to_vec(),
                _ => vec![1],
            };
            cells.extend(counts.into_iter().map(|threads| Cell { load, case, reads, threads }));
        }
    }
    cells
}

impl fmt::Display for Cell {
    /// Formats as in `noisy short, 99 % reads, 8 threads`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.load.name(), self.case.name())?;
        if let Some(reads) = self.reads {
            write!(f, ", {reads} % reads")?;
        }
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, ", {} thread{plural}", self.threads)
    }
}

impl rounds::Cell for Cell {
    fn load(&self) -> Load {
        self.load
    }
}

impl Measurement for Plan {
    type Cell = Cell;
    type Figures = Figures;

    fn turns(&self) -> (&Rounds, &[Cell]) {
        (&self.rounds, &self.cells)
    }

    fn repeat(&self, cell: Cell, subject: &'static str, _counts: bool) -> Repeated<Figures> {
        let order = Order {
            family: self.family,
            subject: subject.to_owned(),
            case: cell.case,
            reads: cell.reads,
            threads: cell.threads,
            seconds: self.seconds_of(cell.load),
            ticks: self.ticks,
        };
        let work_s = if cell.case == Case::Justine { JUSTINE_LIMIT_S } else { order.seconds };
        let planned_s = work_s + cell.load.patience().as_secs_f64() / 2.0;
        repeat(&crate::bench::Order::Lock(order), planned_s)
    }
}

impl Plan {
    /// Returns the length of a repetition under this load, in seconds: as asked for, or as long as
    /// the load needs.
    pub fn seconds_of(&self, load: Load) -> f64 {
        self.seconds.unwrap_or_else(|| SECONDS.max(load.least_repetition().as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(case: Case, reads: Option<u32>) -> Workload {
        Workload { case, reads }
    }

    #[test]
    fn an_uncontended_cell_has_one_thread() {
        let work = [Case::Uncontended, Case::FiveMicroseconds].map(|case| workload(case, None));
        let cells = cells(&[Load::Idle, Load::Noisy], &work, &[2, 4]);
        let of =
            |load: Load| cells.iter().filter(move |c| c.load == load).map(|c| (c.case, c.threads));
        let expected =
            [(Case::Uncontended, 1), (Case::FiveMicroseconds, 2), (Case::FiveMicroseconds, 4)];
        assert!(of(Load::Idle).eq(expected) && of(Load::Noisy).eq(expected));
    }

    #[test]
    fn some_cases_have_their_own_number_of_threads() {
        let cells = cells(&[Load::Idle], &[workload(Case::Justine, None)], &[2, 4]);
        assert!(cells.iter().map(|cell| cell.threads).eq([30]));
    }

    #[test]
    fn a_crowd_is_measured_for_longer_unless_a_time_is_asked_for() {
        let (rounds, ticks) = (Rounds::default(), Ticks::calibrate());
        let mut plan =
            Plan { family: Family::Exclusive, cells: vec![], rounds, seconds: None, ticks };
        assert!(plan.seconds_of(Load::Crowd(300)) >= plan.seconds_of(Load::Idle));
        plan.seconds = Some(0.01);
        assert!((plan.seconds_of(Load::Crowd(300)) - 0.01).abs() < 1e-9);
    }

    #[test]
    fn readers_who_never_leave_have_a_writer_beside_them() {
        let cells = cells(&[Load::Idle], &[workload(Case::Continuous, None)], &[1, 2]);
        assert!(cells.iter().map(|cell| cell.threads).eq([2]));
    }

    #[test]
    fn a_cell_has_a_name() {
        let cell = |reads, threads| Cell { load: Load::Noisy, case: Case::Short, reads, threads };
        assert_eq!(cell(None, 8).to_string(), "noisy short, 8 threads");
        assert_eq!(cell(Some(99), 1).to_string(), "noisy short, 99 % reads, 1 thread");
    }
}
