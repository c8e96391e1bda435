//! Which cells are measured, and in which order.
//!
//! A cell is a load, a case and a number of threads. Within it, all subjects take turns: each
//! repetition goes round all of them in a new order, so that whatever else happens on the machine
//! meets all alike. The first repetition warms caches, frequencies and page tables; it is rejected.

use std::fmt;

use super::measure::{Case, Order, Outcome, Ticks};
use super::neighbours::{Load, Neighbours};
use super::others::Moment;
use super::repeat::repeat;
use super::subjects::Family;
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::stats::Random;

/// Under what conditions something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// What else the machine has to do.
    pub load: Load,
    /// The workload.
    pub case: Case,
    /// How many of a hundred critical sections only read; `None` where nothing is mixed.
    pub reads: Option<u32>,
    /// Threads at the lock.
    pub threads: usize,
}

/// What threads do: a case, and the mixture of readers and writers in it.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// The case.
    pub case: Case,
    /// As in [`Cell::reads`].
    pub reads: Option<u32>,
}

/// All that is to be measured.
pub struct Plan {
    /// Of which the locks are.
    pub family: Family,
    /// In this order.
    pub cells: Vec<Cell>,
    /// Our locks.
    pub subjects: Vec<&'static str>,
    /// The locks beside them; ratios are to the first.
    pub peers: Vec<&'static str>,
    /// Repetitions that count.
    pub repetitions: usize,
    /// The length of each.
    pub seconds: f64,
    /// Of the order of subjects.
    pub seed: u64,
    /// Of the counter that times waits.
    pub ticks: Ticks,
}

/// What was measured of one lock in one cell.
pub struct Measured {
    /// The conditions.
    pub cell: Cell,
    /// The lock.
    pub subject: &'static str,
    /// By repetition, the rejected one left out; shorter if there was trouble.
    pub outcomes: Vec<Outcome>,
    /// CPUs that others used meanwhile, by repetition.
    pub others: Vec<f64>,
    /// Why there is no more: missing, broken, without end.
    pub trouble: Option<Trouble>,
}

/// Why a lock could not be measured.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// This machine can't have it.
    Missing(String),
    /// It failed.
    Failed(String),
}

/// The cells of these loads, workloads and thread counts.
pub fn cells(loads: &[Load], workloads: &[Workload], threads: &[usize]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &load in loads {
        for &Workload { case, reads } in workloads {
            // Readers who never leave need a writer beside them.
            let counts = match case {
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
    /// `noisy short, 99 % reads, 8 threads`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.load.name(), self.case.name())?;
        if let Some(reads) = self.reads {
            write!(f, ", {reads} % reads")?;
        }
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, ", {} thread{plural}", self.threads)
    }
}

impl Plan {
    /// Our locks and the peers.
    pub fn all_subjects(&self) -> impl Iterator<Item = &'static str> {
        self.subjects.iter().chain(&self.peers).copied()
    }

    /// How many repetitions there are in all.
    pub fn steps(&self) -> usize {
        self.cells.len() * self.all_subjects().count() * (self.repetitions + 1)
    }

    /// Measures everything. Takes the time that the plan asks for.
    ///
    /// # Errors
    ///
    /// If this command can't start processes. A lock that fails is no error here, but trouble in
    /// its row.
    pub fn carry_out(&self, progress: &mut Progress) -> Result<Vec<Measured>, Failure> {
        let mut random = Random(self.seed);
        let mut all = Vec::new();
        for &cell in &self.cells {
            let neighbours = Neighbours::of(cell.load)
                .map_err(|error| Failure::measured(format!("can't start a neighbour: {error}")))?;
            all.extend(self.measure_cell(cell, &mut random, progress));
            drop(neighbours);
        }
        Ok(all)
    }

    fn measure_cell(
        &self,
        cell: Cell,
        random: &mut Random,
        progress: &mut Progress,
    ) -> Vec<Measured> {
        let new = |subject| Measured {
            cell,
            subject,
            outcomes: Vec::new(),
            others: Vec::new(),
            trouble: None,
        };
        let mut measured: Vec<_> = self.all_subjects().map(new).collect();
        for repetition in 0..=self.repetitions {
            let mut order: Vec<_> = (0..measured.len()).collect();
            random.shuffle(&mut order);
            for index in order {
                let lock = &mut measured[index];
                if lock.trouble.is_none() {
                    self.repeat(lock, repetition > 0);
                }
                progress.step(&format!("{cell}: {}", lock.subject));
            }
        }
        measured
    }

    fn repeat(&self, lock: &mut Measured, counts: bool) {
        let order = Order {
            family: self.family,
            subject: lock.subject.to_owned(),
            case: lock.cell.case,
            reads: lock.cell.reads,
            threads: lock.cell.threads,
            seconds: self.seconds,
            ticks: self.ticks,
        };
        let before = Moment::now();
        let outcome = repeat(&order);
        // The neighbours that we have started ourselves are no news.
        if lock.cell.load == Load::Idle {
            lock.others.extend(before.and_then(|moment| moment.others_since()));
        }
        match outcome {
            Ok(Outcome::Missing(what)) => lock.trouble = Some(Trouble::Missing(what)),
            Ok(Outcome::Violation(what)) => {
                let what = format!("{} with {} threads: {what}", lock.subject, order.threads);
                lock.trouble = Some(Trouble::Failed(what));
            }
            Ok(outcome) if counts => lock.outcomes.push(outcome),
            Ok(_) => {}
            Err(what) => lock.trouble = Some(Trouble::Failed(what)),
        }
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
