//! The watchdog: it takes the seats of workers that are in one task for too long, so that other
//! workers run the waiting tasks meanwhile.
//!
//! | field | written by | meaning |
//! |---|---|---|
//! | `there` | a thread that begins or ends to be the watchdog | not 0: there is one |
//! | `work` | the watchdog, workers | the bell that wakes it while all workers rest |
//! | `dismissed` | the thread that dismisses it | not 0: no worker is left to watch |
//! | `end` | the watchdog, the thread that dismisses it | the bell that wakes it at its end |
//! | `hogs`, `longest_ns` | the watchdog | figures |
//!
//! - WATCH-1 (no lost wake-up): a worker that has rested then checks whether the watchdog sleeps; a
//!   watchdog that is about to sleep then checks whether all workers rest. At least one of the two
//!   sees the other. So while a worker is in a task, the watchdog checks it every half of the
//!   patience.
//!
//! So tasks wait for a worker in a long task for at most one and a half times the patience, plus
//! the wake-up of a spare worker. If all workers rest, nothing ever wakes the process.
//!
//! It follows the monitor thread of Go's scheduler, which retakes processors from threads in system
//! calls. Go stops a goroutine that computes; a closure cannot be stopped, so it goes on without a
//! seat.

use alloc::boxed::Box;
use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Clock, Notify, Platform};
use antiphon_sync::nap;

use super::counters::Stats;
use super::crew::Crew;
use super::policy::Policy;
use super::seats::Turn;
use crate::sleep::{Bell, Park};

/// The state that a crew and its watchdog share.
pub(super) struct Watch<P: Platform> {
    there: P::U32,
    work: Bell<P>,
    dismissed: P::U32,
    end: Bell<P>,
    hogs: P::U64,
    longest_ns: P::U64,
}

/// The watchdog for workers that are in a task for too long, on the thread that calls it.
pub struct Watchdog<'a, P: Platform, Y: Policy<P>> {
    crew: &'a Crew<P, Y>,
    patience_ns: u64,
    seen: Box<[Option<Seen>]>,
}

/// A worker that is in a task for too long, and whose seat may be given to another thread.
pub struct Hog<'a, P: Platform, Y: Policy<P>> {
    crew: &'a Crew<P, Y>,
    worker: usize,
    turn: Turn,
    age_ns: u64,
    since_ns: u64,
}

/// A worker in a task that was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long {
    worker: usize,
    turn: Turn,
    age_ns: u64,
}

/// The task in which a worker was seen, and when it was first seen.
#[derive(Clone, Copy)]
struct Seen {
    turn: Turn,
    since_ns: u64,
}

impl<P: Platform> Watch<P> {
    pub(super) const NEW: Self = Self {
        there: P::U32::ZERO,
        work: Bell::NEW,
        dismissed: P::U32::ZERO,
        end: Bell::NEW,
        hogs: P::U64::ZERO,
        longest_ns: P::U64::ZERO,
    };

    /// Called when a worker no longer rests.
    pub(super) fn ring(&self) {
        // WATCH-1: `Bell::ring` has the fence.
        self.work.ring(&Park::<P>::NEW);
    }

    /// Called when no worker is left to watch.
    pub(super) fn dismiss(&self) {
        // Relaxed: ordered by the fences in `ring`, and in `arm`.
        self.dismissed.store(1, Relaxed);
        self.end.ring(&Park::<P>::NEW);
    }

    pub(super) fn add_to(&self, sum: &mut Stats) {
        // Relaxed: figures.
        sum.hogs = self.hogs.load(Relaxed);
        sum.longest_ns = self.longest_ns.load(Relaxed);
    }
}

impl<'a, P: Platform, Y: Policy<P>> Watchdog<'a, P, Y> {
    pub(super) fn new(crew: &'a Crew<P, Y>, patience_ns: u64) -> Option<Self> {
        // Acquire: the accesses of the last watchdog; pairs with the release in the drop.
        // mutant: `hogs` is ordered by the heavy fence before it, too, and no model compares what
        // two watchdogs store in `longest_ns`.
        crew.watch.there.compare_exchange(0, 1, Acquire, Relaxed).ok()?;
        let seen = (0..crew.seats.sitters()).map(|_| None).collect();
        Some(Self { crew, patience_ns, seen })
    }

    /// Sleeps until it is time to [look](Self::look): for half of the patience or, if all workers
    /// rest, until one does not. Returns `false` if the watchdog was [dismissed](Crew::dismiss).
    pub fn wait(&mut self) -> bool {
        let (watch, park) = (&self.crew.watch, Park::<P>::NEW);
        let ticket = park.begin();
        watch.work.arm(ticket);
        watch.end.arm(ticket);
        // WATCH-1: the fences are in `arm`, and in `ring`.
        let rest = self.crew.idlers.all_rest();
        let deadline = (!rest).then(|| nap::earlier::<P>(None, self.patience_ns / 2));
        if !rest {
            watch.work.disarm();
        }
        let dismissed = watch.dismissed.load(Relaxed) != 0;
        if !dismissed {
            // SAFETY: the ticket is the caller's, until `end` below. However the sleep ends, it is
            // time to look.
            let _ = unsafe { park.sleep(ticket, deadline) };
        }
        watch.work.disarm();
        watch.end.disarm();
        // SAFETY: the ticket is the caller's, and is not used after this.
        unsafe { park.end(ticket) };
        !dismissed
    }

    /// Checks all workers, and calls `found` for each that is in a task for too long. `found` can't
    /// keep the [`Hog`] (SEAT-4).
    pub fn look(&mut self, mut found: impl FnMut(Hog<'_, P, Y>)) {
        let (crew, now_ns) = (self.crew, P::now(Clock::Monotonic));
        for (worker, seen) in self.seen.iter_mut().enumerate() {
            let Some((turn, is_outside)) = crew.seats.turn_of(worker) else {
                *seen = None;
                continue;
            };
            let first = seen.filter(|seen| seen.turn == turn);
            let since_ns = first.map_or(now_ns, |seen| seen.since_ns);
            *seen = Some(Seen { turn, since_ns });
            let age_ns = now_ns.saturating_sub(since_ns);
            // A worker inside has ended its task, or will continue it in a moment.
            if !is_outside || age_ns < self.patience_ns {
                continue;
            }
            // Relaxed: a figure, which no other thread writes.
            if age_ns > crew.watch.longest_ns.load(Relaxed) {
                crew.watch.longest_ns.store(age_ns, Relaxed);
            }
            if !crew.seats.is_away(worker) {
                found(Hog { crew, worker, turn, age_ns, since_ns });
            }
        }
    }
}

impl<P: Platform, Y: Policy<P>> Crew<P, Y> {
    /// Returns whether the worker is still in that task; may be stale at once. A worker that has
    /// lost its seat counts as in the task until it leaves.
    #[must_use]
    pub fn lasts(&self, long: &Long) -> bool {
        self.seats.turn_of(long.worker) == Some((long.turn, true))
    }
}

impl Long {
    /// Returns the number of the worker, as [`Worker::number`](super::Worker::number) does.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Returns how long the worker was seen in the task, in nanoseconds.
    #[must_use]
    pub fn age_ns(&self) -> u64 {
        self.age_ns
    }

    /// Returns whether both are about one task of one worker.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.worker, self.turn) == (other.worker, other.turn)
    }
}

impl<P: Platform, Y: Policy<P>> Hog<'_, P, Y> {
    /// Returns the facts about the task, which outlive the hog.
    #[must_use]
    pub fn long(&self) -> Long {
        Long { worker: self.worker, turn: self.turn, age_ns: self.age_ns }
    }

    /// Takes the seat from the worker, if it is still in that task. Returns the number of the seat,
    /// for another worker.
    #[must_use]
    pub fn take(self) -> Option<usize> {
        let seat = self.crew.seats.take_from(self.worker, self.turn)?;
        self.crew.seats.note_since(self.worker, self.since_ns);
        let hogs = &self.crew.watch.hogs;
        // Relaxed: a figure, which no other thread writes.
        hogs.store(hogs.load(Relaxed) + 1, Relaxed);
        Some(seat)
    }
}

impl<P: Platform, Y: Policy<P>> Drop for Watchdog<'_, P, Y> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `new`.
        self.crew.watch.there.store(0, Release);
    }
}

impl<P: Platform, Y: Policy<P>> fmt::Debug for Watchdog<'_, P, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").field("patience_ns", &self.patience_ns).finish_non_exhaustive()
    }
}

impl<P: Platform, Y: Policy<P>> fmt::Debug for Hog<'_, P, Y> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hog").finish_non_exhaustive()
    }
}
