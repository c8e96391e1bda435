//! The fates of the table's mutants, which `antiphon lab check` reports: that command is built from
//! this tree, but has no compiler to try mutants with.
//!
//! ```json
//! { "mutants": [{ "name": "…", "fate": "killed", "by": "model_spin::…", "blob": "e73c657…" }] }
//! ```
//!
//! `blob` is git's name for the contents of the changed file when the mutant was tried. While the
//! file is the same, `--resume` does not try the mutant again: so the mutants can be tried in
//! several runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::fate::Fate;
use super::mutant::Mutant;
use crate::{Failure, tree};

/// A record, and its file.
pub struct Record {
    path: PathBuf,
    contents: Contents,
    /// Git's name for the contents of each file that has a mutant.
    blobs: BTreeMap<String, String>,
}

#[derive(Default, Deserialize, Serialize)]
struct Contents {
    mutants: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Entry {
    name: String,
    fate: String,
    by: Option<String>,
    blob: String,
}

impl Record {
    /// Reads the record in the file at `path`; it is empty if there is no such file. Entries of
    /// mutants that are not in `table` are dropped.
    ///
    /// # Errors
    ///
    /// If the file is not a record, or git can't name the mutated files.
    pub fn open(root: &Path, path: PathBuf, table: &[Mutant]) -> Result<Self, Failure> {
        let mut contents = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| format!("{}: not a record: {error}", path.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Contents::default(),
            Err(error) => return Err(format!("{}: {error}", path.display()).into()),
        };
        contents.mutants.retain(|entry| table.iter().any(|mutant| named(mutant, &entry.name)));
        let mut files: Vec<_> = table.iter().map(|mutant| mutant.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        let blobs = tree::blobs(root, &files)?;
        let blobs = files.into_iter().map(str::to_owned).zip(blobs).collect();
        Ok(Self { path, contents, blobs })
    }

    /// Returns whether the mutant was tried in the current version of its file.
    pub fn has(&self, mutant: &Mutant) -> bool {
        let blob = self.blobs.get(&mutant.file);
        let same = |entry: &Entry| named(mutant, &entry.name) && Some(&entry.blob) == blob;
        self.contents.mutants.iter().any(same)
    }

    /// Records the fate of a mutant of the table, and writes the file, so that an interrupted run
    /// keeps its results. Other mutants, and those that were not tried, are not recorded.
    ///
    /// # Errors
    ///
    /// If the file can't be written.
    pub fn note(&mut self, mutant: &Mutant, fate: &Fate) -> Result<(), Failure> {
        let (Some(name), Some(blob)) = (name(mutant), self.blobs.get(&mutant.file)) else {
            return Ok(());
        };
        let by = match fate {
            Fate::Killed(by) | Fate::Undecided(by) => Some(by.clone()),
            Fate::Survived | Fate::Unbuildable(_) => None,
            Fate::Skipped => return Ok(()),
        };
        let (name, fate, blob) = (name.to_owned(), fate.name().to_owned(), blob.clone());
        let mutants = &mut self.contents.mutants;
        mutants.retain(|entry| entry.name != name);
        mutants.push(Entry { name, fate, by, blob });
        mutants.sort_by(|a, b| a.name.cmp(&b.name));
        let text = format!("{}\n", serde_json::to_string_pretty(&self.contents)?);
        std::fs::write(&self.path, text)
            .map_err(|error| format!("{}: {error}", self.path.display()).into())
    }
}

/// The name of a mutant of the table: its entry without the invariant.
fn name(mutant: &Mutant) -> Option<&str> {
    Some(mutant.entry.as_deref()?.rsplit_once(" [")?.0)
}

fn named(mutant: &Mutant, wanted: &str) -> bool {
    name(mutant) == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(name: &str, file: &str) -> Mutant {
        let mut mutant = Mutant::new(file, "one two", 0..3, "1");
        mutant.entry = Some(format!("{name} [INV-1]"));
        mutant
    }

    #[test]
    fn what_was_tried_is_known_until_its_file_changes() {
        let directory = std::env::temp_dir().join(format!("xtask-record-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, a) = (directory.join("record.json"), directory.join("a.rs"));
        std::fs::write(&a, "one two").unwrap();
        let table = [mutant("a name [and]", "a.rs"), mutant("another", "a.rs")];
        let open = |table: &[Mutant]| Record::open(&directory, path.clone(), table).unwrap();

        let mut record = open(&table);
        record.note(&table[0], &Fate::Killed("model_a::b".to_owned())).unwrap();
        record.note(&table[1], &Fate::Skipped).unwrap();
        record.note(&Mutant::new("a.rs", "one two", 4..7, "2"), &Fate::Survived).unwrap();
        let read = open(&table);
        assert_eq!(read.contents.mutants.len(), 1, "a skipped one and an ordering are not noted");
        let entry = &read.contents.mutants[0];
        assert_eq!((entry.name.as_str(), entry.fate.as_str()), ("a name [and]", "killed"));
        assert_eq!(entry.by.as_deref(), Some("model_a::b"));
        assert!(read.has(&table[0]) && !read.has(&table[1]));

        std::fs::write(&a, "one two three").unwrap();
        let mut changed = open(&table);
        assert!(!changed.has(&table[0]), "to be tried again");
        changed.note(&table[0], &Fate::Survived).unwrap();
        assert_eq!(open(&table).contents.mutants.len(), 1, "in the place of the old one");
        assert_eq!(open(&table[1..]).contents.mutants, [], "not in the table any longer");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
