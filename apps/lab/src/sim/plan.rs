//! The plan of a simulation: all rows to simulate, in order.

use antiphon_replay::locks::{LOCKS, SimLock};
use antiphon_report::table::printable;
use serde::{Deserialize, Serialize};

use super::cases::{self, Case};
use super::experiment::{Arbitration, Pages};
use super::search::VARIANTS;
use super::sweep::Cell;
use crate::bench::Family;
use crate::named::Named as _;

/// Everything that the rows of a report depend on, as it stands in the report. Rows with equal
/// plans belong in one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The verb of `sim`: `locks` or `rwlocks`.
    pub verb: String,
    pub machine: String,
    /// Hash of the machine's file.
    pub hash: String,
    /// First of `seeds` consecutive seeds.
    pub seed: u64,
    pub seeds: u16,
    pub ms: f64,
    pub arbitration: Arbitration,
    pub pages: Pages,
    /// Whether the subjects are those of `--search`.
    pub search: bool,
    pub cases: Vec<String>,
    pub subjects: Vec<String>,
    pub threads: Vec<usize>,
}

/// Returns the verb that simulates locks of a family.
pub fn verb(family: Family) -> &'static str {
    match family {
        Family::Exclusive => "locks",
        Family::Shared => "rwlocks",
    }
}

/// Returns the locks of the search, or all locks of a family.
///
/// # Errors
///
/// If there is nothing to search in this family.
pub fn locks(family: Family, search: bool) -> Result<Vec<&'static SimLock>, String> {
    match (search, family) {
        (false, _) => Ok(LOCKS.iter().filter(|lock| cases::family(lock) == family).collect()),
        (true, Family::Exclusive) => Ok(VARIANTS.iter().collect()),
        (true, Family::Shared) => {
            let what =
                "--search: readers-writer locks have no parameters to vary; use it with sim locks";
            Err(what.to_owned())
        }
    }
}

impl Plan {
    /// Returns the number of rows; `None` if it is too large.
    pub fn rows(&self) -> Option<usize> {
        let Self { cases, subjects, threads, .. } = self;
        cases.len().checked_mul(subjects.len())?.checked_mul(threads.len())
    }

    /// Returns a cell for each row: those of a case are adjacent, and within it those of a lock.
    ///
    /// # Errors
    ///
    /// A message that names a case or lock that the family does not have.
    pub fn cells(&self, family: Family) -> Result<Vec<Cell>, String> {
        let known = locks(family, self.search)?;
        let case = |name: &String| {
            let found = cases::of(family).find(|case| case.name == name);
            found.ok_or_else(|| format!("no case {name:?} here"))
        };
        let subject = |name: &String| {
            let found = known.iter().copied().find(|lock| lock.name == name);
            found.ok_or_else(|| format!("no lock {name:?} here"))
        };
        let cases: Vec<&Case> = self.cases.iter().map(case).collect::<Result<_, _>>()?;
        let subjects: Vec<_> = self.subjects.iter().map(subject).collect::<Result<_, _>>()?;
        let seed = self.seed;
        let mut cells = Vec::new();
        for case in cases {
            for &subject in &subjects {
                let of_lock = |&threads: &usize| Cell { subject, case, threads, seed };
                cells.extend(self.threads.iter().map(of_lock));
            }
        }
        Ok(cells)
    }

    /// Returns the heading for people, in one line.
    pub fn heading(&self) -> String {
        let Self { seed, ms, pages, .. } = self;
        let (machine, arbitration) = (printable(&self.machine), self.arbitration.name());
        let seeds = match self.seeds {
            ..2 => format!("seed {seed}"),
            seeds => format!("{seeds} seeds from {seed} on, medians"),
        };
        format!(
            "Simulated (a model, not a measurement): {machine}, {ms:?} ms, {seeds}, arbitration \
             {arbitration}, pages {pages}"
        )
    }
}
