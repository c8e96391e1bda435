//! Programs that CMD, or a descendant, executed, and that the library did not get into.
//!
//! The library records each program that a process with the library executes. The reason why the
//! library is not in a program is derived after the run, from the program's file or from the
//! environment that it was given. Programs that a program without the library executes are not
//! seen.

use std::path::{Path, PathBuf};

use antiphon_record::{HandedOn, Program, Snapshot};
use serde_json::{Value, json};

use crate::program;

/// The most programs that are named in the text; the others are in the JSON report.
const NAMED: usize = 5;

/// A program that kept its own locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Its path.
    pub program: String,
    /// Number of times that it was executed.
    pub times: u64,
    /// Which program, why, and what to do.
    pub why: String,
}

/// The programs of a recording that kept their own locks, the most frequent first.
pub fn unreached(snapshot: &Snapshot) -> Vec<Unreached> {
    let mut all: Vec<Unreached> = Vec::new();
    for Program { path, times, user, group, handed_on } in &snapshot.programs {
        // Removes superfluous slashes and dots that a search leaves in the path.
        let path: PathBuf = Path::new(path).components().collect();
        let obstacle = || program::obstacle_for(&path, *user, *group).map(|obstacle| obstacle.why);
        let shown = path.display();
        let why = match handed_on {
            // The path leads to another file there than here.
            HandedOn::OutOfReach => format!(
                "{shown} was started where the library can't be found, in another root directory: \
                 make the folder of `antiphon run -- sh -c 'echo $LD_PRELOAD'` visible there"
            ),
            HandedOn::No => obstacle().unwrap_or_else(|| {
                format!(
                    "{shown} was started without LD_PRELOAD in its environment: hand LD_PRELOAD \
                     and ANTIPHON_RECORD on"
                )
            }),
            HandedOn::Yes | HandedOn::Aside => match obstacle() {
                Some(why) => why,
                None => continue,
            },
        };
        let path = shown.to_string();
        // From here on, users do not matter.
        match all.iter_mut().find(|known| known.why == why) {
            Some(known) => known.times += times,
            None => all.push(Unreached { program: path, times: *times, why }),
        }
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.times));
    all
}

/// The number of times that programs with the library were executed, as far as is known.
pub fn reached(snapshot: &Snapshot) -> u64 {
    let with_library = snapshot.programs.iter().filter(|one| one.handed_on == HandedOn::Yes);
    let reached = with_library
        .filter(|one| program::obstacle_for(Path::new(&one.path), one.user, one.group).is_none());
    reached.map(|one| one.times).sum()
}

/// Sentences on the programs that kept their own locks.
pub fn sentences(unreached: &[Unreached], what: &str) -> Vec<String> {
    let sentence = |one: &Unreached| {
        let times = if one.times == 1 { "once".to_owned() } else { format!("{} times", one.times) };
        format!("Not {what} in a program that was started {times}: {}.", one.why)
    };
    let mut sentences: Vec<_> = unreached.iter().take(NAMED).map(sentence).collect();
    if let Some(more @ 1..) = unreached.len().checked_sub(NAMED) {
        let programs = if more == 1 { "program" } else { "programs" };
        sentences.push(format!("Nor in {more} more {programs}: --report F.json names them all."));
    }
    sentences
}

/// The programs that kept their own locks, in JSON.
pub fn objects(unreached: &[Unreached]) -> Value {
    let object =
        |one: &Unreached| json!({ "program": one.program, "times": one.times, "why": one.why });
    unreached.iter().map(object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &str, times: u64, user: u32, handed_on: HandedOn) -> Program {
        Program { path: path.to_owned(), times, user, group: 0, handed_on }
    }

    #[test]
    fn who_was_not_handed_the_library_is_named_once() {
        let programs = vec![
            program("/proc/self/exe", 7, 0, HandedOn::Yes),
            program("/proc/self/exe", 2, 1, HandedOn::No),
            program("/proc/self/exe", 3, 2, HandedOn::No),
            program("/gone", 9, 0, HandedOn::Yes),
        ];
        let found = unreached(&Snapshot { programs, ..Snapshot::default() });
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].times, found[0].program.as_str()), (5, "/proc/self/exe"));
        assert!(found[0].why.contains("without LD_PRELOAD"), "{found:?}");
    }

    #[test]
    fn a_program_in_another_root_directory_is_told_as_such() {
        let programs = vec![program("/proc/self/exe", 1, 0, HandedOn::OutOfReach)];
        let found = unreached(&Snapshot { programs, ..Snapshot::default() });
        assert!(found.len() == 1 && found[0].why.contains("another root directory"), "{found:?}");
    }

    #[test]
    fn few_are_named_and_the_others_counted() {
        let one = |times| Unreached { program: String::new(), times, why: format!("{times}") };
        let said = |count| sentences(&(1..=count).map(one).collect::<Vec<_>>(), "replaced");
        assert_eq!(said(1), ["Not replaced in a program that was started once: 1."]);
        assert_eq!(said(5).len(), 5);
        assert!(said(6)[5].starts_with("Nor in 1 more program:"), "{:?}", said(6));
        assert!(said(9)[5].starts_with("Nor in 4 more programs:"), "{:?}", said(9));
    }
}
