//! `crates/models/mutants.toml`: replacements that break one invariant each.
//!
//! ```toml
//! [[mutant]]
//! name = "two-shufflers"
//! invariant = "SHFL-1: one waiter at most is the shuffler"
//! file = "crates/sync/src/lock/shfl.rs"
//! find = "shuffler.take()"
//! replace = "shuffler.clone()"
//! killed_by = ["model_shfl::three_waiters"]
//! ```
//!
//! `find` must occur exactly once in the file, so that the entry means one place. `killed_by` names
//! the tests that must all fail, as `BINARY` or `BINARY::TEST`; without it, any model may.
//! `survives` says why the mutant is not noticed yet, if it is not: a debt of the models.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::mutant::Mutant;
use crate::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    invariant: String,
    file: String,
    find: String,
    replace: String,
    #[serde(default)]
    killed_by: Vec<String>,
    survives: Option<String>,
}

/// The mutants in the table `name` with contents `text`; `read` reads a file of the tree.
///
/// # Errors
///
/// If the table is not well formed, or an entry does not mean exactly one place.
pub fn mutants(
    name: &str,
    text: &str,
    read: impl Fn(&str) -> Result<Option<String>, Failure>,
) -> Result<Vec<Mutant>, Failure> {
    let document: Document = toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
    let mut names = BTreeSet::new();
    let mut mutants = Vec::new();
    for entry in document.mutant {
        let fail = |what: &str| Failure::from(format!("{name}: {}: {what}", entry.name));
        if !names.insert(entry.name.clone()) {
            return Err(fail("the name is taken"));
        }
        if entry.find == entry.replace {
            return Err(fail("`find` and `replace` are the same"));
        }
        let source = read(&entry.file)?.ok_or_else(|| fail("the file is not text"))?;
        let mut places = source.match_indices(&entry.find);
        let (at, _) = places.next().ok_or_else(|| fail("`find` is not in the file"))?;
        if places.next().is_some() {
            return Err(fail("`find` is more than once in the file"));
        }
        let range = at..at + entry.find.len();
        let mut mutant = Mutant::new(&entry.file, &source, range, &entry.replace);
        mutant.entry = Some(format!("{} [{}]", entry.name, entry.invariant));
        // The table states what must be noticed: no comment in the source excuses a survivor.
        mutant.explanation = entry.survives;
        mutant.killed_by = entry.killed_by;
        mutants.push(mutant);
    }
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"
[[mutant]]
name = "a"
invariant = "INV-1: one"
file = "f.rs"
find = "one()"
replace = "two()"
killed_by = ["model_a::t"]
"#;

    fn parse(table: &str, source: &str) -> Result<Vec<Mutant>, String> {
        mutants("t", table, |_| Ok(Some(source.to_owned()))).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_becomes_a_mutant() {
        let mutants = parse(TABLE, "x;\n// mutant: no excuse\none();\n").unwrap();
        assert_eq!(mutants.len(), 1);
        assert_eq!(mutants[0].to_string(), "f.rs:3 a [INV-1: one]");
        assert_eq!(mutants[0].killed_by, ["model_a::t"]);
        assert_eq!(mutants[0].explanation, None);
        let table = format!("{TABLE}survives = \"why\"\n");
        assert_eq!(parse(&table, "one()").unwrap()[0].explanation.as_deref(), Some("why"));
        assert_eq!(
            mutants[0].apply("x;\n// mutant: no excuse\none();\n").lines().last(),
            Some("two();")
        );
    }

    #[test]
    fn an_entry_means_exactly_one_place() {
        assert!(parse(TABLE, "none").unwrap_err().contains("not in the file"));
        assert!(parse(TABLE, "one(); one();").unwrap_err().contains("more than once"));
    }

    #[test]
    fn defects_of_the_table_are_errors() {
        for (table, expected) in [
            (format!("{TABLE}{TABLE}"), "taken"),
            (TABLE.replace("two()", "one()"), "are the same"),
            (TABLE.replace("invariant", "invariants"), "unknown field"),
            (TABLE.replace("find = \"one()\"\n", ""), "missing field"),
        ] {
            let error = parse(&table, "one()").unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
