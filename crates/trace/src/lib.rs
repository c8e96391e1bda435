//! Traces of programs: the operations of their threads on locks, with their times.
//!
//! `antiphon record` writes one, `antiphon replay` runs it on a simulated machine. A [`Trace`] is a
//! list of [`Thread`]s, each a list of [`Event`]s in the order of time; locks, call sites and
//! threads are named by their index in the tables of the trace. [`file`](mod@file) documents the
//! format.
//!
//! ```
//! use antiphon_trace::{About, Event, Lock, LockKind, Reader, Site, Tables, Thread, What, Writer};
//!
//! let mut bytes = Vec::new();
//! let mut writer = Writer::new(&mut bytes, &About::default())?;
//! let take = What::Takes { lock: 0, site: 0, shared: false, tried: false };
//! let events = [(10, take), (250, What::Releases { lock: 0 })];
//! let events = events.map(|(at_ns, what)| Event { at_ns, what });
//! writer.events(0, &events)?;
//! writer.finish(&Tables {
//!     locks: vec![Lock { kind: LockKind::Mutex, address: 0x5000, process: 0 }],
//!     sites: vec![Site { name: "main".into(), ..Site::default() }],
//!     threads: vec![Thread::default()],
//!     ..Tables::default()
//! })?;
//!
//! let trace = Reader::read(&bytes[..])?;
//! assert_eq!(trace.threads[0].events, events);
//! # Ok::<(), antiphon_trace::Error>(())
//! ```

pub mod file;

mod codec;
mod error;
mod event;
mod reader;
mod writer;

pub use error::Error;
pub use event::{Event, What};
pub use reader::Reader;
pub use writer::Writer;

use serde::{Deserialize, Serialize};

/// A recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The program that was recorded, and the machine.
    pub about: About,
    /// The locks and condition variables.
    pub locks: Vec<Lock>,
    /// The places in the program that called them.
    pub sites: Vec<Site>,
    /// The threads, with their events.
    pub threads: Vec<Thread>,
    /// The part of the program's time that recording took, by kind of event; unknown for kinds that
    /// are missing.
    pub costs: Vec<Cost>,
    /// Number of events of all threads that were dropped for lack of room.
    pub dropped: u64,
    /// Whether the file ends before its end was written, because the recorder was killed. The
    /// content is valid; names of locks and sites may be missing.
    pub cut_off: bool,
}

impl Trace {
    /// The number of events of all threads.
    #[must_use]
    pub fn events(&self) -> usize {
        self.threads.iter().map(|thread| thread.events.len()).sum()
    }

    /// The time of the first event, in nanoseconds since the recording began.
    #[must_use]
    pub fn begins_ns(&self) -> u64 {
        let first = self.threads.iter().filter_map(|thread| thread.events.first());
        first.map(|event| event.at_ns).min().unwrap_or(0)
    }

    /// The time of the last event, in nanoseconds since the recording began.
    #[must_use]
    pub fn ends_ns(&self) -> u64 {
        let last = |thread: &Thread| thread.events.last().map_or(0, |event| event.at_ns);
        self.threads.iter().map(last).max().unwrap_or(0)
    }
}

/// The recorded program and its machine, known when the recording begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The version of the recorder.
    pub antiphon: String,
    /// The machine, in words.
    pub machine: String,
    /// The number of CPUs that the program could use.
    pub cpus: u32,
    /// The lock implementation that the program used, by its name in reports.
    pub lock: String,
    /// The time at which the recording began, in seconds since 1970.
    pub began_s: u64,
}

/// The tables that are known when the recording ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// As the field of [`Trace`] with this name.
    pub locks: Vec<Lock>,
    /// As the field of [`Trace`] with this name.
    pub sites: Vec<Site>,
    /// The threads, as in [`Trace`]; their events were written before.
    pub threads: Vec<Thread>,
    /// As the field of [`Trace`] with this name.
    pub costs: Vec<Cost>,
    /// As the field of [`Trace`] with this name.
    pub dropped: u64,
}

/// The time that recording an event of one kind took in the program: a mean over some that were
/// timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// The kind: [`What::code`].
    pub code: u8,
    /// The part before the event's time, in picoseconds: in the span that ends with the event.
    pub before_ps: u64,
    /// The part after the event's time, in picoseconds: in the span that begins with the event.
    pub after_ps: u64,
    /// Number of events that were timed.
    pub timed: u64,
}

/// A lock or a condition variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The kind of the object.
    pub kind: LockKind,
    /// Its address in the memory of its process.
    pub address: u64,
    /// The process; processes are numbered from 0 in the order in which they began.
    pub process: u32,
}

/// The kinds of objects that threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockKind {
    /// A mutex of any kind.
    Mutex,
    /// A spinlock.
    Spin,
    /// A readers-writer lock.
    RwLock,
    /// A condition variable.
    Condition,
    /// Stands for all objects that found the recorder's tables full.
    Rest,
}

/// A place in the program that calls a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its function, source line, or another name.
    pub name: String,
    /// The file that contains it; empty if unknown.
    pub module: String,
    /// Its offset in that file.
    pub offset: u64,
}

/// A thread of a recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The kernel's id of the thread.
    pub id: u32,
    /// The process, numbered as in [`Lock::process`].
    pub process: u32,
    /// Its role: 1 + the site of the function in which it began, 0 if that isn't known.
    pub role: u32,
    /// Number of its events that were dropped for lack of room.
    pub dropped: u64,
    /// Its events, in the order of time.
    #[serde(skip)]
    pub events: Vec<Event>,
}
