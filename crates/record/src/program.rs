//! Writing and reading of executed programs, so that a report can name those that don't get the
//! library.

use core::sync::atomic::Ordering::Relaxed;

use crate::Writer;
use crate::layout::{Full, PROGRAM, PROGRAM_BYTES};
use crate::path::{path_key, read_path, store_path};
use crate::table::{Found, find, hash};

/// A program that processes of the recording executed, or tried to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its absolute path.
    pub path: String,
    /// Number of executions.
    pub times: u64,
    /// The real user of the process that executed it.
    pub user: u32,
    /// The real group.
    pub group: u32,
    /// Whether it was given the library.
    pub handed_on: HandedOn,
}

/// Whether a program was given the library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HandedOn {
    /// Its environment did not name the library.
    #[default]
    No,
    /// Its environment named the library, which could be found.
    Yes,
    /// Its environment named the library, which could not be found: most likely in another root
    /// directory.
    OutOfReach,
    /// The program has loaded the library, which replaces nothing in it because of a tool
    /// ([`crate::aside`]).
    Aside,
}

impl HandedOn {
    const ALL: [Self; 4] = [Self::No, Self::Yes, Self::OutOfReach, Self::Aside];

    fn bits(self) -> u64 {
        self as u64
    }

    fn from_bits(bits: u64) -> Self {
        usize::try_from(bits).ok().and_then(|at| Self::ALL.get(at).copied()).unwrap_or_default()
    }
}

impl Writer {
    /// Counts that the calling process is about to execute the program at the absolute `path`, as
    /// `user` and `group`; `handed_on` says whether the library is preloaded.
    pub fn executes(self, path: &[u8], user: u32, group: u32, handed_on: HandedOn) {
        if path.is_empty() || path.len() > PROGRAM_BYTES {
            return self.dropped(Full::Programs);
        }
        let caller = u64::from(group) << 32 | u64::from(user);
        let begin = hash(caller) ^ handed_on.bits();
        let programs = &self.map.programs;
        let found = find(programs, path_key(begin, path), |record| &record.key);
        let Some(record) = found.index().and_then(|index| programs.get(index)) else {
            return self.dropped(Full::Programs);
        };
        if let Found::New(_) = found {
            record.caller.store(caller, Relaxed);
            record.handed_on.store(handed_on.bits(), Relaxed);
            store_path(&record.path, path);
            record.length.store(path.len() as u64, Relaxed);
        }
        record.count.fetch_add(1, Relaxed);
    }
}

/// The programs from the words of their table.
pub(crate) fn read_programs(words: &[u64]) -> Vec<Program> {
    let program = |record: &[u64]| {
        Some(Program {
            path: read_path(&record[5..], record[4])?,
            times: record[1],
            user: record[2] as u32,
            group: (record[2] >> 32) as u32,
            handed_on: HandedOn::from_bits(record[3]),
        })
    };
    words.chunks(PROGRAM.words).filter(|record| record[0] != 0).filter_map(program).collect()
}
