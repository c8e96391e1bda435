//! The list of the pools of this process, for introspection.

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

/// A pool with any policy.
pub(crate) trait Looked: Send + Sync {
    /// Returns the present states of its workers. Does not block.
    fn workers(&self) -> Look;

    /// Returns, by seat, a time not before its worker began its present state, in nanoseconds of
    /// the monotonic clock, if it is known.
    fn since_ns(&self) -> Vec<Option<u64>>;

    /// Returns the rest of the pool's state. Asks up to `most` fibers of each thread, and waits for
    /// the answers until `until`.
    fn seen(&self, most: usize, until: Instant) -> Seen;
}

/// The state of a pool that an answer shows.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) threads: usize,
    pub(crate) spares: usize,
    pub(crate) stats: Stats,
    /// `None` if its tasks are not fibers.
    pub(crate) census: Option<Census>,
    /// The latest hogs, the oldest first.
    pub(crate) hogs: Vec<Hog>,
    /// The recording without spans; `None` if the pool records nothing.
    pub(crate) recording: Option<Recording>,
}

/// A pool that exists, or did.
#[derive(Clone)]
struct Entry {
    /// A number that no other pool has.
    id: u64,
    /// The process of the pool: a child of a fork has the memory of its parent's pools, but not the
    /// threads.
    process: u32,
    pool: Weak<dyn Looked>,
}

#[derive(Default)]
struct Entries {
    all: Vec<Entry>,
    /// The number of pools so far.
    count: u64,
}

static ENTRIES: Mutex<Entries> = Mutex::new(Entries { all: Vec::new(), count: 0 });

fn entries() -> MutexGuard<'static, Entries> {
    lock(&ENTRIES)
}

/// Adds a pool to the list. Calls [`open`] if the environment asks for it.
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

/// Removes the pool at this address, which is being dropped, from the list.
pub(crate) fn leave(pool: *const ()) {
    entries().all.retain(|entry| !std::ptr::eq(entry.pool.as_ptr().cast(), pool));
}

/// Returns the existing pools of this process, each with its unique number.
pub(super) fn pools() -> Vec<(u64, Arc<dyn Looked>)> {
    let (process, all) = (process::id(), entries().all.clone());
    let ours = all.iter().filter(|entry| entry.process == process);
    ours.filter_map(|entry| Some((entry.id, entry.pool.upgrade()?))).collect()
}
