//! The mutants that the models must detect: those of `crates/models/mutants.toml`, by model.
//!
//! A mutant names the tests that must fail with it, and [`TESTS`] which models they run. So a
//! mutant belongs to each of those models, at least one of which must detect it. Which mutants
//! *were* detected is known only from the last run that `cargo xtask mutants --record
//! docs/results/mutants.json` recorded. Both files are embedded when the command is built.

use antiphon_models::TESTS;
use serde::Deserialize;

static TABLE: &str = include_str!("../../../../crates/models/mutants.toml");
static RECORD: &str = include_str!("../../../../docs/results/mutants.json");

#[derive(Deserialize)]
struct Table {
    mutant: Vec<Mutant>,
}

#[derive(Deserialize)]
struct Mutant {
    name: String,
    #[serde(default)]
    killed_by: Vec<String>,
}

#[derive(Deserialize)]
struct Record {
    mutants: Vec<Tried>,
}

#[derive(Deserialize)]
struct Tried {
    name: String,
    fate: String,
}

/// The mutants and their recorded results.
pub struct Mutants {
    table: Table,
    record: Record,
}

impl Mutants {
    /// The mutants of the tree that the command was built from.
    ///
    /// # Errors
    ///
    /// One line that names the embedded file that is invalid.
    pub fn embedded() -> Result<Self, String> {
        Ok(Self {
            table: toml::from_str(TABLE).map_err(|error| format!("mutants.toml: {error}"))?,
            record: serde_json::from_str(RECORD)
                .map_err(|error| format!("mutants.json: {error}"))?,
        })
    }

    /// Returns the names of the mutants that the model must detect, alone or with others of its
    /// test.
    pub fn of(&self, model: &str) -> Vec<&str> {
        let runs: Vec<_> =
            TESTS.iter().copied().flatten().filter(|test| test.runs(model)).collect();
        let is_run = |name: &String| runs.iter().any(|test| test.name == name);
        let all = self.table.mutant.iter().filter(|mutant| mutant.killed_by.iter().any(is_run));
        all.map(|mutant| mutant.name.as_str()).collect()
    }

    /// Returns the mutants among `names` that were detected in the last recorded run. `None` if one
    /// of them has never been run.
    pub fn killed<'a>(&self, names: &[&'a str]) -> Option<Vec<&'a str>> {
        let fate = |name: &str| self.record.mutants.iter().find(|tried| tried.name == name);
        let mut killed = Vec::new();
        for name in names {
            if fate(name)?.fate == "killed" {
                killed.push(*name);
            }
        }
        Some(killed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn mutants() -> Mutants {
        Mutants::embedded().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn each_mutant_of_the_table_belongs_to_a_model() {
        let mutants = mutants();
        let models = antiphon_models::all();
        let wanted: BTreeSet<_> =
            models.iter().flat_map(|model| mutants.of(model.name())).collect();
        for mutant in &mutants.table.mutant {
            assert!(wanted.contains(mutant.name.as_str()), "{}", mutant.name);
        }
        assert_eq!(mutants.of("no-such-lock/excludes-2x1"), Vec::<&str>::new());
    }

    #[test]
    fn only_what_was_tried_is_told() {
        let tried = |name: &str, fate: &str| Tried { name: name.to_owned(), fate: fate.to_owned() };
        let record = Record { mutants: vec![tried("one", "killed"), tried("two", "survived")] };
        let mutants = Mutants { record, ..mutants() };
        assert_eq!(mutants.killed(&["one", "two"]), Some(vec!["one"]));
        assert_eq!(mutants.killed(&["one", "three"]), None);
        assert_eq!(mutants.killed(&[]), Some(vec![]));
    }
}
