//! The recording: a file of fixed size that running programs write and a reader reads.
//!
//! To find out what a program waits for, a process creates a [`Recording`], names its file in the
//! environment variable [`VARIABLE`] and starts the program under the preload library. The library
//! maps the file, in this program and in every process that it starts, and counts into it with a
//! [`Writer`]: by atomic additions to shared memory, without a lock or an allocation.
//! [`Recording::read`] may be called at any time, also after the program has ended: whatever ended
//! it, its records remain.
//!
//! ```
//! use antiphon_record::{Recording, Scope};
//!
//! # let path = std::env::temp_dir().join(format!("recording-example-{}", std::process::id()));
//! let recording = Recording::create(&path, Scope::Contended)?;
//! // … run a program with ANTIPHON_RECORD={path} …
//! let snapshot = recording.read()?;
//! for row in &snapshot.rows {
//!     println!("{:?} {:?} {:?}", row.kind, row.acquisitions, row.wait.p99());
//! }
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The file is a header and tables of records, each record an array of 64-bit words ([`layout`]):
//!
//! | table | key | other contents of a record |
//! |---|---|---|
//! | costs | kind of event | time that recording some of those took ([`events`]) |
//! | processes | process id | parent's record, start, form of the locks |
//! | modules | hash of path, device, inode | path, identity of the file |
//! | sites | process, return address | module, offset in its file |
//! | locks | process, address, kind | first site, number of locks at that address |
//! | rows | lock, site, to read or not | counts, histograms of waits and holds |
//! | threads | process, thread id | blocked time by kind, current wait, nesting |
//! | edges | lock held, lock taken (not: tried) | count, rows, other locks held |
//! | programs | hash of path and caller | path of the executed program, count |
//!
//! A child of `fork` and an executed program write into the same tables, under a process record of
//! their own: addresses are valid only within one process, so every key has the process.
//!
//! No loss is silent: an event that finds its table full is counted in the header
//! ([`Snapshot::dropped`]), and waits without room for their row go to a last common row, so that
//! sums stay right.
//!
//! A wait is counted at its row when it ends. Until then it is in its thread's record, where the
//! wait of a killed thread remains: [`Snapshot::close_waits`] counts those. A [`Lookout`] looks up
//! the current state of single threads, without reading the whole file.
//!
//! The file is sparse: [`FILE_BYTES`] long, but it takes only the space that was written, and a
//! process maps no more of it than it uses ([`Mapping`]). After that, a file of [`Scope::Events`]
//! has the events of each thread with their times ([`events`]).

pub mod aside;
pub mod coop;
pub mod door;
pub mod events;
pub mod inherit;
pub mod layout;
pub mod sites;

mod column;
mod cost;
mod cycles;
mod histogram;
mod lookout;
mod mapping;
mod module;
mod namespace;
mod order;
mod path;
mod program;
mod reader;
mod snapshot;
mod stacks;
mod table;
mod writer;

pub use column::{Column, freeze};
pub use cost::Cost;
pub use histogram::{BUCKETS, Histogram, bucket, bucket_floor};
pub use layout::FILE_BYTES;
pub use lookout::{Lookout, State};
pub use mapping::{Mapping, Refused};
pub use module::{BuildId, FileId, Module};
pub use namespace::namespace;
pub use program::{HandedOn, Program};
pub use reader::Recording;
pub use snapshot::{
    Blocked, Closed, Dropped, Edge, Lock, Nests, Process, Row, Site, Snapshot, Stack, Strangers,
    Thread, Waiting,
};
pub use stacks::StackWriter;
pub use writer::{RowWriter, ThreadWriter, Writer};

/// The environment variable with the path of a program's recording.
pub const VARIABLE: &str = "ANTIPHON_RECORD";

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Waits only. An acquisition that doesn't wait is not seen and costs nothing more.
    Contended,
    /// Every acquisition, every hold, and the order in which locks are taken.
    Full,
    /// Like `Full`, and the events of each thread with their times ([`events`]).
    Events,
}

impl Scope {
    /// Returns whether every acquisition is recorded.
    #[must_use]
    pub const fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::Events)
    }

    /// Length of the file, in bytes.
    pub(crate) const fn file_bytes(self) -> u64 {
        match self {
            Self::Events => FILE_BYTES + events::ROLL_BYTES,
            _ => FILE_BYTES,
        }
    }

    pub(crate) const fn bits(self) -> u64 {
        match self {
            Self::Contended => 1,
            Self::Full => 2,
            Self::Events => 3,
        }
    }

    pub(crate) const fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            1 => Some(Self::Contended),
            2 => Some(Self::Full),
            3 => Some(Self::Events),
            _ => None,
        }
    }
}

/// The kind of object that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mutex of the normal kind.
    Mutex,
    /// An adaptive mutex.
    Adaptive,
    /// A recursive mutex.
    Recursive,
    /// An error-checking mutex.
    ErrorCheck,
    /// A robust, priority or process-shared mutex, which the C library keeps.
    Foreign,
    /// A condition variable; its waits last from the release of the mutex to the wake.
    Condition,
    /// A spinlock.
    Spin,
    /// A readers-writer lock of any kind, including process-shared ones. Its events have one of the
    /// next two kinds.
    RwLock,
    /// A readers-writer lock, taken to read.
    Read,
    /// A readers-writer lock, taken to write.
    Write,
    /// All objects that found their table full.
    Rest,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Mutex,
        Self::Adaptive,
        Self::Recursive,
        Self::ErrorCheck,
        Self::Foreign,
        Self::Condition,
        Self::Spin,
        Self::RwLock,
        Self::Read,
        Self::Write,
        Self::Rest,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Adaptive => "adaptive",
            Self::Recursive => "recursive",
            Self::ErrorCheck => "errorcheck",
            Self::Foreign => "foreign",
            Self::Condition => "cond",
            Self::Spin => "spin",
            Self::RwLock => "rwlock",
            Self::Read => "rdlock",
            Self::Write => "wrlock",
            Self::Rest => "rest",
        }
    }

    /// The kind of the object: both `Read` and `Write` are of a `RwLock`.
    pub(crate) const fn of_lock(self) -> Self {
        match self {
            Self::Read | Self::Write => Self::RwLock,
            other => other,
        }
    }

    /// The kind of a row for a lock of this kind, to read or not.
    pub(crate) const fn of_row(self, reads: bool) -> Self {
        match (self, reads) {
            (Self::RwLock, true) => Self::Read,
            (Self::RwLock, false) => Self::Write,
            (other, _) => other,
        }
    }

    pub(crate) fn bits(self) -> u64 {
        self as u64
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        usize::try_from(bits).ok().and_then(|at| Self::ALL.get(at).copied()).unwrap_or(Self::Rest)
    }
}
