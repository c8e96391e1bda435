//! Cases of the documents: what simulated threads do with locks.
//!
//! Each case is an operation, or a round of some, which every thread repeats. `docs/simulator.md`
//! gives the sources of the sizes. None was chosen after seeing a figure that it leads to; those of
//! [`file`] were corrected later, according to the benchmark and Linux.
//!
//! | module | has |
//! |---|---|
//! | [`hand`] | a thread at work, and the record of it |
//! | [`one`] | cases of one lock |
//! | [`file`] | cases of the locks of a file |
//! | [`many`] | cases of many locks |

mod file;
mod hand;
mod many;
mod one;

use antiphon_replay::locks::{Sections, SimLock};
use antiphon_sim::Machine;

pub use hand::{Hand, Site};

use Operation::{Locks, Sections as Plain};

use crate::bench::Family;

/// A workload.
#[derive(Clone, Copy)]
pub struct Case {
    /// Name for `--case`.
    pub name: &'static str,
    /// Description of the operation.
    pub about: &'static str,
    /// Whether it is for exclusive locks, for readers-writer locks, or both.
    families: &'static [Family],
    /// Returns the number of its locks on a machine.
    pub locks: fn(&Machine) -> usize,
    /// The operation, or the few that form a round.
    pub operation: Operation,
}

/// What an operation requires of locks.
#[derive(Clone, Copy)]
pub enum Operation {
    /// Locks must run critical sections, none of which is nested in another.
    Sections(fn(&Hand<dyn Sections>)),
    /// Locks must support acquire and release: nested, with try-lock, or with several readers.
    Locks(fn(&Hand)),
}

const MUTEX: &[Family] = &[Family::Exclusive];
const SHARED: &[Family] = &[Family::Shared];
const BOTH: &[Family] = &[Family::Exclusive, Family::Shared];

/// All cases.
const CASES: [Case; 15] = [
    Case {
        name: "create",
        about: "creates a file in a directory that all share",
        families: BOTH,
        locks: |_| 1,
        operation: Plain(one::create),
    },
    Case {
        name: "enumerate",
        about: "lists a directory that all share",
        families: SHARED,
        locks: |_| 1,
        operation: Locks(one::enumerate),
    },
    Case {
        name: "mixed",
        about: "lists a shared directory; one in ten creates a file in it",
        families: SHARED,
        locks: |_| 1,
        operation: Locks(one::mixed),
    },
    Case {
        name: "mmap",
        about: "faults a page in; one in 32 maps or unmaps memory",
        families: SHARED,
        locks: |_| 1,
        operation: Locks(one::mmap),
    },
    Case {
        name: "lock1",
        about: "locks or unlocks a byte of a file of its own: half a very short section",
        families: MUTEX,
        locks: |_| 1,
        operation: Plain(file::lock1),
    },
    Case {
        name: "lock2",
        about: "locks or unlocks a byte of one file: a short section, and half a very short one",
        families: MUTEX,
        locks: |_| file::LOCK2,
        operation: Plain(file::lock2),
    },
    Case {
        name: "leveldb",
        about: "reads a key: two short sections, and the search between them",
        families: MUTEX,
        locks: |_| 1,
        operation: Plain(one::leveldb),
    },
    Case {
        name: "trylock",
        about: "four of ten only try, and do something else if it is taken",
        families: MUTEX,
        locks: |_| 1,
        operation: Locks(one::trylock),
    },
    Case {
        name: "hash",
        about: "a hash table of 64 locks: 89 % read without, 10 % write, 1 % resize under all",
        families: MUTEX,
        locks: |_| 1 + many::BUCKETS,
        operation: Locks(many::hash),
    },
    Case {
        name: "nested",
        about: "1 to 12 locks, one within the other; 4 on average",
        families: MUTEX,
        locks: |_| many::DEPTH * many::WIDTH,
        operation: Locks(many::nested),
    },
    Case {
        name: "mail",
        about: "delivers a message: processes, memory, spool directories, run queues",
        families: MUTEX,
        locks: many::mail_locks,
        operation: Plain(many::mail),
    },
    Case {
        name: "100us",
        about: "computes for 100 µs under the lock",
        families: MUTEX,
        locks: |_| 1,
        operation: Plain(one::long_100us),
    },
    Case {
        name: "1ms",
        about: "computes for 1 ms under the lock",
        families: MUTEX,
        locks: |_| 1,
        operation: Plain(one::long_1ms),
    },
    Case {
        name: "10ms",
        about: "computes for 10 ms under the lock",
        families: MUTEX,
        locks: |_| 1,
        operation: Plain(one::long_10ms),
    },
    Case {
        name: "sleep",
        about: "sleeps for 1 ms under the lock",
        families: MUTEX,
        locks: |_| 1,
        operation: Plain(one::sleep),
    },
];

/// Returns the family of a lock.
pub fn family(lock: &SimLock) -> Family {
    if lock.shared { Family::Shared } else { Family::Exclusive }
}

/// Returns the cases for locks of a family.
pub fn of(family: Family) -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(move |case| case.families.contains(&family))
}

/// Returns the case of this name.
pub fn named(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}
