//! The measured and simulated rows that the marks are computed from.

use antiphon_report::failure::Failure;
use antiphon_report::progress::Progress;
use antiphon_report::report;
use antiphon_report::survey::{self, Extent};
use serde_json::Value;

use super::simulated;
use crate::laboratory;

/// The output of `antiphon locks --measure --json` on the machine that it names.
const KEPT: &str = include_str!("../../../../docs/results/locks.json");

/// Rows, and their origin.
pub struct Evidence {
    /// The machine that was measured, and when.
    pub machine: Value,
    /// The command line that measured them.
    pub command: String,
    /// Rows in the form of `bench`, with `family` and `role`.
    pub measured: Vec<Value>,
    /// The rows of the simulator.
    pub simulated: Vec<Value>,
}

impl Evidence {
    /// The rows that are built into this program.
    pub fn kept() -> Self {
        let report: Value = serde_json::from_str(KEPT).unwrap_or_default();
        let rows = |key: &str| report[key].as_array().cloned().unwrap_or_default();
        Self {
            machine: report["measured_on"].clone(),
            command: report["measured_by"].as_str().unwrap_or_default().to_owned(),
            measured: rows("measured"),
            simulated: rows("simulated"),
        }
    }

    /// Measures all locks with the laboratory, and simulates ours. Takes some minutes.
    ///
    /// # Errors
    ///
    /// If the laboratory is missing, or can't start processes; if a simulated lock can't go on.
    pub fn measure(extent: Extent) -> Result<Self, Failure> {
        let (seconds, repetitions) = (extent.seconds.to_string(), extent.repetitions.to_string());
        let rows = laboratory::ask(&[survey::VERB, &seconds, &repetitions])?;
        let measured = serde_json::from_slice(&rows)
            .map_err(|error| Failure::measured(format!("the rows of antiphon-lab: {error}")))?;
        let mut progress = Progress::new(simulated::steps());
        Ok(Self {
            machine: report::machine(),
            command: report::command(),
            measured,
            simulated: simulated::rows(&mut progress)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{COMPARED, LOCKS, Lock};
    use super::super::marks;
    use super::*;

    #[test]
    fn the_rows_that_came_along_have_marks_for_every_lock_of_ours() {
        let kept = Evidence::kept();
        assert!(kept.machine["cpu"].is_string() && kept.command.contains("--measure"));
        for lock in LOCKS.iter().filter(|lock| lock.ours && !is_new(lock, &kept_names())) {
            let (family, name) = (lock.family.name(), lock.name);
            for role in marks::ROLES {
                assert!(marks::of(&kept.measured, family, name, role).is_some(), "{name}: {role}");
            }
            assert!(marks::is_numa_aware(&kept.simulated, name).is_some(), "{name}");
        }
        assert!(kept.simulated.iter().all(|row| row["model"] == true));
    }

    #[test]
    fn the_rows_that_came_along_are_of_the_locks_that_are_listed() {
        let kept = kept_names();
        let listed = LOCKS.iter().filter(|lock| !is_new(lock, &kept));
        let listed = listed.map(|lock| (lock.name.to_owned(), lock.family.name().to_owned()));
        assert!(kept.iter().cloned().eq(listed));
    }

    /// The names and kinds of the locks in the built-in rows.
    fn kept_names() -> Vec<(String, String)> {
        let report: Value = serde_json::from_str(KEPT).expect("a report");
        let text = |of: &Value, key: &str| of[key].as_str().expect("a text").to_owned();
        let locks = report["locks"].as_array().expect("a list").iter();
        locks.map(|lock| (text(lock, "name"), text(lock, "kind"))).collect()
    }

    /// Whether this lock for comparison is newer than the rows. A new lock can be added without
    /// measuring all locks again.
    fn is_new(lock: &Lock, kept: &[(String, String)]) -> bool {
        COMPARED.contains(&lock.name) && !kept.iter().any(|(name, _)| name == lock.name)
    }
}
