//! `--sites F`: a file that chooses a policy for locks by call site.
//!
//! | module | does |
//! |---|---|
//! | [`file`] | reads the file, and reports errors in it |
//! | [`places`] | finds the places in programs that the file names |
//!
//! The places go to the preload library in a file in memory ([`antiphon_record::sites`]), in which
//! the library counts the matches of each rule.

mod file;
mod places;

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use antiphon_record::sites::{self, FILE_BYTES};
use antiphon_report::input;

use crate::memory;
use file::Entry;

/// The longest file of sites, in bytes: each line has only a place and a word.
const MOST_BYTES: usize = 1 << 20;

/// The part of `--help` about sites, which comes last.
pub const HELP: &str = "\
Sites (--sites F): a TOML file that chooses the policy by which a mutex or readers-writer lock sorts
its waiters, where threads wait for it, or where it is initialised (pthread_mutex_init, and
pthread_rwlock_init):

  [[site]]
  at = \"add_row+0x1f (db)\"        # one call, as the report names it
  policy = \"none\"

  [[site]]
  function = \"Table::insert\"      # all calls in a function
  module = \"libtable.so\"          # (of this file; if left out, of all that CMD loads)
  policy = \"numa\"

  [[site]]
  module = \"/opt/db/libx.so\"      # one call in a file without names
  offset = 0x1234
  policy = \"none\"

A lock that is waited for at several of these sites has the policy of the latest.";

/// The rules of a file, in memory that the library maps.
pub struct Sites {
    memory: File,
    /// The entries of the file: each with its site and its line.
    entries: Vec<(String, usize)>,
    /// The index of each rule's entry.
    entry_of: Vec<usize>,
}

impl Sites {
    /// Reads the file at `path` for a run of `program`.
    ///
    /// # Errors
    ///
    /// One line with the error and its place in the file.
    pub fn read(path: &Path, program: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = input::text(path, MOST_BYTES).map_err(|error| format!("{shown}: {error}"))?;
        let entries = file::parse(&text).map_err(|error| error.of(path))?;
        let mut modules = places::Modules::of(program);
        let (mut rules, mut entry_of) = (Vec::new(), Vec::new());
        for (at, entry) in entries.iter().enumerate() {
            let found = modules.rules(entry);
            let found = found.map_err(|why| format!("{shown}:{}: {why}", entry.line))?;
            entry_of.resize(entry_of.len() + found.len(), at);
            rules.extend(found);
        }
        let bytes = sites::file(&rules).map_err(|why| format!("{shown}: {why}"))?;
        let memory = in_memory(&bytes).map_err(|error| format!("{shown}: {error}"))?;
        let entries = entries
            .iter()
            .map(|entry: &Entry| (format!("{shown}:{}: {}", entry.line, entry.at), entry.line))
            .collect();
        Ok(Self { memory, entries, entry_of })
    }

    /// The path by which CMD and its children open the memory, while this process lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.as_raw_fd())
    }

    /// Another descriptor of the memory, to hand on.
    ///
    /// # Errors
    ///
    /// Those of `dup`.
    pub fn file(&self) -> std::io::Result<File> {
        self.memory.try_clone()
    }

    /// The entries that nothing has matched so far, as `file:line: what`.
    ///
    /// # Errors
    ///
    /// Those of reading the memory.
    pub fn unmatched(&self) -> std::io::Result<Vec<String>> {
        let mut bytes = vec![0; FILE_BYTES];
        self.memory.read_exact_at(&mut bytes, 0)?;
        let mut times = vec![0; self.entries.len()];
        for (rule, matched) in sites::matched(&bytes).into_iter().enumerate() {
            times[self.entry_of[rule]] += matched;
        }
        let unmatched = self.entries.iter().zip(times).filter(|(_, times)| *times == 0);
        Ok(unmatched.map(|((entry, _), _)| entry.clone()).collect())
    }
}

/// A sentence on entries that nothing matched; `None` if each was matched.
pub fn sentence(unmatched: &[String]) -> Option<String> {
    (!unmatched.is_empty()).then(|| {
        format!(
            "No thread waited for a lock there, and none was initialised there, so that no policy \
             was set: {}.",
            unmatched.join("; ")
        )
    })
}

/// A file with these contents, without a name in any file system.
fn in_memory(bytes: &[u8]) -> std::io::Result<File> {
    let file = memory::file(c"antiphon-sites", 0)?;
    file.write_all_at(bytes, 0)?;
    Ok(file)
}
