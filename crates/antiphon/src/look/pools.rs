//! The pools of this process, for programs that look at them.

use std::env;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use antiphon_runtime::sched::{Look, Stats};

use super::{VARIABLE, open};
use crate::fiber::census::Census;
use crate::observe::Recording;
use crate::pool::Hog;
use crate::unpoisoned::lock;

/// A pool, whatever its policy.
pub(crate) trait Looked: Send + Sync {
    /// The work of its workers now. Does not block.
    fn workers(&self) -> Look;

    /// By seat, when its worker began the state that it is in now, or later; in nanoseconds of the
    /// monotonic clock, if it is known.
    fn since_ns(&self) -> Vec<Option<u64>>;

    /// All else. Asks its fibers, up to `most` of each thread, and waits for the answers until
    /// `until`.
    fn seen(&self, most: usize, until: Instant) -> Seen;
}

/// The state of a pool that an answer shows.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) threads: usize,
    pub(crate) spares: usize,
    pub(crate) stats: Stats,
    /// `None`: its tasks are no fibers.
    pub(crate) census: Option<Census>,
    /// The latest ones, the oldest first.
    pub(crate) hogs: Vec<Hog>,
    /// Without spans. Nothing: it records nothing.
    pub(crate) recording: Option<Recording>,
}

/// A pool that is there, or was.
#[derive(Clone)]
struct Entry {
    /// A number that no other pool has.
    id: u64,
    /// A child of a fork has the memory of its parent's pools, and none of the threads.
    process: u32,
    pool: Weak<dyn Looked>,
}

#[derive(Default)]
struct Entries {
    all: Vec<Entry>,
    /// How many there ever were.
    count: u64,
}

static ENTRIES: Mutex<Entries> = Mutex::new(Entries { all: Vec::new(), count: 0 });

fn entries() -> MutexGuard<'static, Entries> {
    lock(&ENTRIES)
}

/// A pool is there; opens what it is looked at by if the environment says so.
pub(crate) fn enter(pool: Weak<dyn Looked>) {
    let process = process::id();
    {
        let mut entries = entries();
        let id = entries.count;
        entries.count += 1;
        entries.all.retain(|entry| entry.process == process);
        entries.all.push(Entry { id, process, pool });
    }
    let wanted = env::var_os(VARIABLE).is_some_and(|value| !value.is_empty() && value != "0");
    if wanted && let Err(error) = open() {
        eprintln!("antiphon: {VARIABLE} is set, but the socket for `antiphon top` failed: {error}");
    }
}

/// The pool at this address is gone.
pub(crate) fn leave(pool: *const ()) {
    entries().all.retain(|entry| !std::ptr::eq(entry.pool.as_ptr().cast(), pool));
}

/// The pools of this process that are there, with a number that is no other's.
pub(super) fn pools() -> Vec<(u64, Arc<dyn Looked>)> {
    let (process, all) = (process::id(), entries().all.clone());
    let ours = all.iter().filter(|entry| entry.process == process);
    ours.filter_map(|entry| Some((entry.id, entry.pool.upgrade()?))).collect()
}
