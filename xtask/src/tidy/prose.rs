//! Counts habits of prose that keep readers out; the counts may only fall.
//!
//! A [habit](HABITS) is found in comments of Rust, C and shell, and in Markdown. `xtask/prose.toml`
//! limits how often each may occur in each folder. More occurrences are a finding; fewer are one,
//! too, until `cargo xtask tidy --fewer` lowers the numbers in the file (it never raises one).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Language, ratchet};
use crate::finding::Finding;
use crate::source::words;
use crate::{Failure, tree};

/// The file with the numbers.
const LIMITS: &str = "xtask/prose.toml";
/// The comment above the numbers.
const ABOUT: &str = "\
# How often a habit of prose may occur, by folder; the habits, and what to write
# instead: xtask/src/tidy/prose.rs. The numbers may only fall.
";
/// The most lines that are named where there are more than allowed.
const EXAMPLES: usize = 3;

/// A habit: its key in the file, the test for a line, and what to write instead.
struct Habit {
    key: &'static str,
    is_in: fn(&Line<'_>) -> bool,
    instead: &'static str,
}

/// A line of prose.
struct Line<'a> {
    text: &'a str,
    /// Whether it is the first line of a paragraph or of an item's documentation.
    is_first: bool,
}

impl Line<'_> {
    fn has(&self, word: &str) -> bool {
        words(self.text, word).next().is_some()
    }

    fn begins(&self, starts: &[&str]) -> bool {
        self.is_first && starts.iter().any(|start| self.text.starts_with(start))
    }
}

const HABITS: [Habit; 5] = [
    Habit {
        key: "who",
        is_in: |line| line.has("who") || line.has("Who") || line.has("whom"),
        instead: "name the role: the caller, the owner, the waiter, the worker",
    },
    Habit {
        key: "somebody",
        is_in: |line| {
            ["nobody", "somebody", "anybody", "Nobody", "Somebody", "Anybody"]
                .iter()
                .any(|word| line.has(word))
        },
        instead: "name the role: no waiter, another thread, a caller",
    },
    Habit {
        key: "what-for-a-noun",
        is_in: |line| line.begins(&["What is ", "What has ", "What there ", "What becomes "]),
        instead: "begin with the noun: the result, the state, the waiters",
    },
    Habit {
        key: "so-many",
        is_in: |line| line.text.contains("so many") || line.text.contains("So many"),
        instead: "name the parameter or the number",
    },
    Habit {
        key: "has-them-do",
        is_in: |line| line.begins(&["Has "]),
        instead: "begin with a verb that says what is done: wakes, runs, pins",
    },
];

/// The places of each habit, by key and folder.
type Counts<'a> = BTreeMap<(&'a str, String), Vec<(String, usize)>>;

/// The allowed numbers, by key and folder.
type Limits = BTreeMap<String, BTreeMap<String, usize>>;

/// Counts habits over several files.
#[derive(Default)]
pub struct Prose {
    counts: Counts<'static>,
}

impl Prose {
    /// Counts the habits of a file.
    pub fn read(&mut self, file: &str, language: Language, text: &str) {
        if language == Language::Other {
            return;
        }
        let mut was_prose = false;
        for (index, line) in text.lines().enumerate() {
            let prose = prose_of(language, line);
            if let Some(text) = prose.filter(|text| !text.is_empty()) {
                let line = Line { text, is_first: !was_prose };
                for habit in HABITS.iter().filter(|habit| (habit.is_in)(&line)) {
                    let places = self.counts.entry((habit.key, folder(file))).or_default();
                    places.push((file.to_owned(), index + 1));
                }
            }
            was_prose = prose.is_some_and(|text| !text.is_empty());
        }
    }

    /// Finds habits that are more frequent than allowed, or less frequent than the file says.
    ///
    /// # Errors
    ///
    /// If the file can't be read.
    pub fn check(&self, root: &Path) -> Result<Vec<Finding>, Failure> {
        let limits: Limits = ratchet::read(root, LIMITS)?;
        let changed: BTreeSet<_> = tree::changed_since(root, "HEAD")?.into_iter().collect();
        let mut findings = Vec::new();
        for ((key, folder), places) in &self.counts {
            let limit = limit(&limits, key, folder);
            if places.len() > limit {
                findings.push(too_many(key, folder, places, limit, &changed));
            }
        }
        let is_stale =
            |(key, folder, limit): &(&String, &String, usize)| self.count(key, folder) < *limit;
        let stale: Vec<_> = all(&limits).filter(is_stale).collect();
        if let Some((key, folder, limit)) = stale.first() {
            let now = self.count(key, folder);
            findings.push(Finding::of(
                LIMITS,
                format!(
                    "`{key}` in {folder} is down to {now} from {limit} ({} such numbers): \
                     `cargo xtask tidy --fewer` writes that down",
                    stale.len()
                ),
            ));
        }
        Ok(findings)
    }

    /// Lowers the numbers in the file to those of the tree.
    ///
    /// # Errors
    ///
    /// If the file can't be read or written.
    pub fn lower(&self, root: &Path) -> Result<(), Failure> {
        let mut limits: Limits = ratchet::read(root, LIMITS)?;
        for (key, folders) in &mut limits {
            for (folder, limit) in folders.iter_mut() {
                *limit = self.count(key, folder).min(*limit);
            }
            folders.retain(|_, limit| *limit > 0);
        }
        limits.retain(|_, folders| !folders.is_empty());
        ratchet::write(root, LIMITS, ABOUT, &text_of(&limits))
    }

    fn count(&self, key: &str, folder: &str) -> usize {
        let here = |((k, f), _): &(&(&str, String), _)| *k == key && f == folder;
        self.counts.iter().find(here).map_or(0, |(_, places)| places.len())
    }
}

fn too_many(
    key: &str,
    folder: &str,
    places: &[(String, usize)],
    limit: usize,
    changed: &BTreeSet<String>,
) -> Finding {
    // Lines of changed files come first.
    let (new, old): (Vec<_>, Vec<_>) = places.iter().partition(|(file, _)| changed.contains(file));
    let named = new.into_iter().chain(old).take(EXAMPLES);
    let named: Vec<_> = named.map(|(file, line)| format!("{file}:{line}")).collect();
    let instead = HABITS.iter().find(|habit| habit.key == key).map_or("", |habit| habit.instead);
    let what = format!(
        "`{key}`: {} lines, {limit} allowed ({}): {instead}",
        places.len(),
        named.join(", ")
    );
    Finding::of(folder, what)
}

fn limit(limits: &Limits, key: &str, folder: &str) -> usize {
    limits.get(key).and_then(|folders| folders.get(folder)).copied().unwrap_or(0)
}

fn all(limits: &Limits) -> impl Iterator<Item = (&String, &String, usize)> {
    limits
        .iter()
        .flat_map(|(key, folders)| folders.iter().map(move |(folder, limit)| (key, folder, *limit)))
}

fn text_of(limits: &Limits) -> String {
    let lines = |folders: &BTreeMap<String, usize>| -> String {
        folders.iter().map(|(folder, limit)| format!("\"{folder}\" = {limit}\n")).collect()
    };
    limits.iter().map(|(key, folders)| format!("\n[{key}]\n{}", lines(folders))).collect()
}

/// The folder for which a file is counted: a crate, a program, or the first part of its path.
fn folder(file: &str) -> String {
    let mut parts = file.split('/');
    let (first, second) = (parts.next().unwrap_or(file), parts.next());
    match second {
        Some(second) if ["crates", "apps"].contains(&first) => format!("{first}/{second}"),
        Some(_) => first.to_owned(),
        None => ".".to_owned(),
    }
}

/// The prose of a line: of a comment on its own line, or of Markdown.
fn prose_of(language: Language, line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = match language {
        Language::Rust => line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!'])),
        Language::C => ["/*", "*", "//"].iter().find_map(|start| line.strip_prefix(start)),
        Language::Shell => line.strip_prefix('#'),
        Language::Markdown => Some(line.trim_start_matches(['#', '-', '>', '|', ' '])),
        Language::Other => None,
    };
    rest.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(file: &str, language: Language, text: &str) -> Vec<(String, String, usize)> {
        let mut prose = Prose::default();
        prose.read(file, language, text);
        let counts = prose.counts.into_iter();
        counts.map(|((key, folder), at)| (key.to_owned(), folder, at.len())).collect()
    }

    fn entry(key: &str, folder: &str, count: usize) -> (String, String, usize) {
        (key.to_owned(), folder.to_owned(), count)
    }

    #[test]
    fn habits_are_found_in_comments_only() {
        let text = "/// Has a worker wake for so many tasks.\nfn who() {}\n// Somebody, and who\n";
        let found = counted("crates/sync/src/a.rs", Language::Rust, text);
        let here = |key| entry(key, "crates/sync", 1);
        assert_eq!(found, ["has-them-do", "so-many", "somebody", "who"].map(here));
        assert_eq!(counted("a.c", Language::C, "int who;\n/* nobody */\n").len(), 1);
    }

    #[test]
    fn the_beginning_of_a_text_is_its_first_line() {
        let text = "/// One.\n/// Has two.\n\n/// Has three.\n";
        let found = counted("xtask/a.rs", Language::Rust, text);
        assert_eq!(found, [entry("has-them-do", "xtask", 1)]);
        let found = counted("A.md", Language::Markdown, "## What is kept\n\n- What is lost\n");
        assert_eq!(found, [entry("what-for-a-noun", ".", 2)]);
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let folders = BTreeMap::from([("crates/sync".to_owned(), 3), (".".to_owned(), 1)]);
        let limits = Limits::from([("who".to_owned(), folders)]);
        assert_eq!(toml::from_str::<Limits>(&text_of(&limits)).unwrap(), limits);
        assert_eq!(limit(&limits, "who", "crates/sync"), 3);
        assert_eq!(limit(&limits, "who", "docs"), 0);
    }

    #[test]
    fn numbers_fall_and_do_not_rise() {
        let root = std::env::temp_dir().join(format!("xtask-prose-{}", std::process::id()));
        std::fs::create_dir_all(root.join("xtask")).unwrap();
        let write = |limits: &str| std::fs::write(root.join(LIMITS), limits).unwrap();
        let mut prose = Prose::default();
        prose.read("docs/a.md", Language::Markdown, "Who\n\nWho\n");
        for (before, after) in [(3, 2), (2, 2), (1, 1)] {
            write(&format!("[who]\ndocs = {before}\nxtask = 4\n"));
            prose.lower(&root).unwrap();
            let limits: Limits = ratchet::read(&root, LIMITS).unwrap();
            assert_eq!(limit(&limits, "who", "docs"), after);
            assert_eq!(limit(&limits, "who", "xtask"), 0);
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
