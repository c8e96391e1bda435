//! The schedulers that a process is connected to, one after the other.
//!
//! ```text
//!             connect                    a thread has noticed the end (`lose`)
//!   0 ───────────────────► number 1 ──────────────────────────────► number 1, lost
//!                                                                        │ search
//!                          number 2 ◄────────────────────────────────────┘
//! ```
//!
//! - CONNECT-1: a page stays mapped to the end of the process: slots are borrowed from it. The page
//!   of a scheduler that has ended is memory that nothing reads.
//! - CONNECT-2: a search waits for nothing and allocates nothing: a lock makes it, perhaps that of
//!   an allocator. It begins a connection at one call, and finds the answer at a later one. And it
//!   is no cancellation point, although the functions of the C library that it calls are.
//! - CONNECT-3: only the process that has connected uses the connections: its child has no page.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use antiphon_hints::{Connecting, Hints};

use crate::{filter, identity, sys};

/// Number of schedulers that a process can be connected to in its life: 4 KiB and a descriptor for
/// each.
const MOST: usize = 16;
/// How often a process that has lost its scheduler looks for another one, and how long it waits for
/// an answer.
const LOOK_NS: u64 = 1_000_000_000;

/// The connections of a process.
pub(super) struct Connections {
    pub(super) socket: &'static str,
    all: [OnceLock<Hints>; MOST],
    /// How many there have been; the last one is the present one.
    count: AtomicU32,
    /// The number of the last connection whose scheduler has ended; 0: none.
    lost: AtomicU32,
    /// The epoch of the process that has connected.
    epoch: AtomicU32,
    search: Mutex<Search>,
}

/// A search for the next scheduler.
struct Search {
    asked: Option<Connecting>,
    next_ns: u64,
}

impl Connections {
    /// None yet; schedulers listen at `socket`.
    pub(super) const fn new(socket: &'static str) -> Self {
        Self {
            socket,
            all: [const { OnceLock::new() }; MOST],
            count: AtomicU32::new(0),
            lost: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            search: Mutex::new(Search { asked: None, next_ns: 0 }),
        }
    }

    /// Connects to the scheduler, if one runs all threads and this process has none yet, or has
    /// lost it. Blocks until the scheduler answers, and may allocate.
    pub(super) fn connect(&self) {
        let Some(epoch) = identity::wiped_epoch() else { return };
        // Without the lock another thread is at it.
        let Ok(_search) = self.search.try_lock() else { return };
        let count = self.count.load(Relaxed);
        let is_new = count == 0 || self.epoch.load(Relaxed) == epoch && self.is_lost(count);
        if is_new && let Ok(hints) = Hints::connect(self.socket) {
            self.epoch.store(epoch, Relaxed);
            self.add(hints);
        }
    }

    /// Returns the number of the last connection; 0 if there is none in this process.
    pub(super) fn number(&self) -> u32 {
        // Acquire: the connection, and the epoch; pairs with the release in `add`.
        match self.count.load(Acquire) {
            // CONNECT-3.
            count if count != 0 && self.epoch.load(Relaxed) == identity::epoch() => count,
            _ => 0,
        }
    }

    /// Returns the connection of that number, unless its scheduler has ended.
    pub(super) fn get(&self, number: u32) -> Option<&Hints> {
        let at = number.checked_sub(1)? as usize;
        if self.is_lost(number) { None } else { self.all.get(at)?.get() }
    }

    /// Returns whether the scheduler of that connection has ended, as far as is known.
    pub(super) fn is_lost(&self, number: u32) -> bool {
        // Relaxed: it orders nothing. Numbers only grow.
        self.lost.load(Relaxed) >= number
    }

    /// Notes that the scheduler of that connection has ended.
    pub(super) fn lose(&self, number: u32) {
        // Relaxed: as above.
        self.lost.fetch_max(number, Relaxed);
    }

    /// Looks for the next scheduler (CONNECT-2), if it is time.
    pub(super) fn search(&self, now_ns: u64) {
        // Whoever has the lock is at it, or was when this process was forked.
        let Ok(mut search) = self.search.try_lock() else { return };
        // Relaxed: written under the lock.
        if self.count.load(Relaxed) as usize == MOST {
            return;
        }
        // `None` where a filter of system calls forbids it.
        let found = filter::optional(|| {
            sys::errno_kept(|| uncancelled(|| search.step(self.socket, now_ns)))
        });
        if let Some(Some(hints)) = found {
            self.add(hints);
        }
    }

    /// Adds a connection. The caller has the lock of the search.
    fn add(&self, hints: Hints) {
        let count = self.count.load(Relaxed);
        if !hints.is_whole() {
            // Unmapped by functions that are cancellation points.
            return uncancelled(|| drop(hints));
        }
        if let Some(place) = self.all.get(count as usize) {
            // The place is free: `count` grows with each.
            let _ = place.set(hints);
            // Release: the connection; pairs with the acquire in `number`.
            self.count.store(count + 1, Release);
        }
    }
}

impl Search {
    /// Begins a connection, or looks for its answer. Returns the connection.
    fn step(&mut self, socket: &'static str, now_ns: u64) -> Option<Hints> {
        if let Some(asked) = &self.asked {
            match asked.answer() {
                Ok(Some(hints)) => {
                    self.asked = None;
                    return Some(hints);
                }
                Ok(None) if now_ns < self.next_ns => return None,
                Ok(None) | Err(_) => self.asked = None,
            }
        }
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + LOOK_NS;
            self.asked = Connecting::begin(Path::new(socket)).ok();
        }
        None
    }
}

// SAFETY: POSIX: both numbers are plain integers, and the second argument may be written to.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, former: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

/// Runs `f`, in which the calling thread is not cancelled.
fn uncancelled<R>(f: impl FnOnce() -> R) -> R {
    let mut former = 0;
    // SAFETY: a number that is valid, and a local. It can't fail.
    unsafe { pthread_setcancelstate(DISABLED, &raw mut former) };
    let result = f();
    // SAFETY: the number that there was.
    unsafe { pthread_setcancelstate(former, &raw mut former) };
    result
}
