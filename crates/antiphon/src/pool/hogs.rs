//! Hogs, tasks that occupied their thread for too long: the thread, and the place in the program.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_linux::glance::{Top, own_id};
use antiphon_platform::{Clock, Clocks as _, ThreadId};
use antiphon_runtime::sched::Long;

use crate::fiber::{Desks, show_stack, top_of};
use crate::observe::{Frame, Trace};
use crate::unpoisoned::lock;

/// A task that occupied its thread for longer than the pool's
/// [patience](super::Builder::patience): see [`Pool::hogs`](super::Pool::hogs).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Hog {
    /// The name of the thread.
    pub thread: String,
    /// How long the thread was seen in that task. It may have stayed longer.
    pub seen: Duration,
    /// How long ago that was; zero if the thread is still in that task.
    pub ago: Duration,
    /// The calls that the thread was in. `None` if the pool does not [name hogs](super::Builder),
    /// the thread has not answered, or the task was over.
    pub trace: Option<Trace>,
}

/// The functions that find and name the frames of a hog.
#[derive(Clone, Copy, Debug)]
pub(super) struct Namer {
    /// Prepares naming; returns an error if it is not possible.
    pub(super) prepare: fn() -> io::Result<()>,
    /// Returns where a thread is, as addresses, innermost first. Waits for the thread's answer for
    /// at most this time, and reads the stack up to the end that `Top` gives.
    pub(super) look: unsafe fn(ThreadId, Top, Duration) -> Option<Vec<u64>>,
    pub(super) name: fn(&[u64]) -> Vec<Frame>,
}

/// The hogs of a pool.
pub(super) struct Hogs {
    namer: Option<Namer>,
    desks: Arc<Desks>,
    /// The thread of each worker, and its name.
    workers: Mutex<BTreeMap<usize, (ThreadId, String)>>,
    latest: Mutex<VecDeque<Seen>>,
}

struct Seen {
    long: Long,
    thread: ThreadId,
    name: String,
    /// How long the thread was seen in that task, and when it was last seen, in nanoseconds.
    seen_ns: u64,
    at_ns: u64,
    /// For a thread with fibers, the number of its turn at that time.
    turn: Option<u32>,
    /// How many times the thread was asked where it is. `TRIES` also if the task is over.
    asked: u32,
    addresses: Option<Vec<u64>>,
}

/// Number of hogs that are kept.
pub(super) const MOST: usize = 64;
/// Maximum number of times that a hog is asked where it is.
const TRIES: u32 = 20;
/// Longest wait for a thread's answer, if no caller waits meanwhile.
const ANSWER: Duration = Duration::from_millis(200);

impl Hogs {
    pub(super) fn new(namer: Option<Namer>, desks: Arc<Desks>) -> Self {
        Self { namer, desks, workers: Mutex::default(), latest: Mutex::default() }
    }

    /// Registers the calling thread as this worker.
    pub(super) fn sits(&self, worker: usize) {
        let name = thread::current().name().unwrap_or("?").to_owned();
        if self.namer.is_some() {
            show_stack();
        }
        lock(&self.workers).insert(worker, (own_id(), name));
    }

    /// Records a hog that was seen just now, and may have been seen before.
    pub(super) fn note(&self, long: Long) {
        let Some((thread, name)) = lock(&self.workers).get(&long.worker()).cloned() else { return };
        let (seen_ns, at_ns) = (long.age_ns(), Linux::now(Clock::Monotonic));
        let mut latest = lock(&self.latest);
        if let Some(seen) = latest.iter_mut().find(|seen| seen.long.is_same(&long)) {
            (seen.long, seen.seen_ns, seen.at_ns) = (long, seen_ns, at_ns);
            return;
        }
        if latest.len() == MOST {
            latest.pop_front();
        }
        let turn = self.desks.turn_of(thread);
        let (asked, addresses) = (0, None);
        latest.push_back(Seen { long, thread, name, seen_ns, at_ns, turn, asked, addresses });
    }

    /// Asks hogs that have not answered and are still in the same task where they are. Waits up to
    /// `answer` for each. `lasts` is for threads without fibers. Returns whether there are hogs
    /// left that may answer the next time.
    pub(super) fn ask(&self, answer: Duration, lasts: impl Fn(&Long) -> bool) -> bool {
        if self.namer.is_none() {
            return false;
        }
        let open: Vec<_> = {
            let latest = lock(&self.latest);
            let open = latest.iter().filter(|seen| seen.addresses.is_none() && seen.asked < TRIES);
            open.map(|seen| (seen.long, seen.thread, seen.turn)).collect()
        };
        let mut are_open = false;
        for (long, thread, turn) in open {
            let is_there = || self.is_there(&long, (thread, turn), &lasts);
            let addresses = is_there().then(|| self.look(thread, answer)).flatten();
            // Addresses taken after the end of that task are not kept.
            let lasts = is_there();
            let mut latest = lock(&self.latest);
            if let Some(seen) = latest.iter_mut().find(|seen| seen.long.is_same(&long)) {
                seen.addresses = addresses.filter(|_| lasts);
                seen.asked = if lasts { seen.asked + 1 } else { TRIES };
                are_open |= seen.addresses.is_none() && seen.asked < TRIES;
            }
        }
        are_open
    }

    /// Returns whether a worker is still in that task, in that turn of its thread. A worker without
    /// a seat may be in another task, which its old seat does not record.
    fn is_there(
        &self,
        long: &Long,
        (thread, turn): (ThreadId, Option<u32>),
        lasts: impl Fn(&Long) -> bool,
    ) -> bool {
        match turn {
            Some(_) => self.desks.turn_of(thread) == turn,
            None => lasts(long),
        }
    }

    fn look(&self, thread: ThreadId, answer: Duration) -> Option<Vec<u64>> {
        // SAFETY: `top_of` returns only the ends of stacks that the thread is on.
        unsafe { (self.namer?.look)(thread, top_of, answer) }
    }

    /// Returns the frames that show where that thread is.
    pub(super) fn trace(&self, thread: ThreadId) -> Option<Trace> {
        self.look(thread, ANSWER).and_then(|addresses| self.named(&addresses))
    }

    fn named(&self, addresses: &[u64]) -> Option<Trace> {
        Some(Trace { frames: (self.namer?.name)(addresses) })
    }

    /// Returns the latest hogs, up to `most`, oldest first. `lasts` is as in [`ask`](Self::ask).
    pub(super) fn read(&self, most: usize, lasts: impl Fn(&Long) -> bool) -> Vec<Hog> {
        let mut latest = lock(&self.latest);
        let older = latest.len().saturating_sub(most);
        let now_ns = Linux::now(Clock::Monotonic);
        let seen = latest.iter_mut().skip(older).map(|seen| {
            // The thread that watches for hogs does not see workers without a seat.
            if self.is_there(&seen.long, (seen.thread, seen.turn), &lasts) {
                seen.seen_ns += now_ns.saturating_sub(seen.at_ns);
                seen.at_ns = now_ns;
            }
            let ago_ns = now_ns.saturating_sub(seen.at_ns);
            let [seen_for, ago] = [seen.seen_ns, ago_ns].map(Duration::from_nanos);
            (seen.name.clone(), seen_for, ago, seen.addresses.clone())
        });
        let seen: Vec<_> = seen.collect();
        drop(latest);
        let hog = |(thread, seen, ago, addresses): (_, _, _, Option<Vec<u64>>)| {
            let trace = addresses.and_then(|addresses| self.named(&addresses));
            Hog { thread, seen, ago, trace }
        };
        seen.into_iter().map(hog).collect()
    }
}

impl fmt::Display for Hog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: in one task for {:.1?} or more", self.thread, self.seen)?;
        self.trace.as_ref().map_or(Ok(()), |trace| write!(f, "{trace}"))
    }
}
