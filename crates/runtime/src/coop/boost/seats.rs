//! The words that a loop and its helper share: one record for each loop.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, SharedWait, ThreadId};

use super::vigil::{NEVER, Vigil};
use crate::coop::Demotion;
use crate::lines::Lines;

/// The release of a loop that is about to give its seat up.
pub(super) const LEAVING: u64 = u64::MAX;

/// The loops of a process that are raised when they are late, and the sleep of their helper.
pub struct Boosts<P: SharedWait> {
    pub(super) seats: Box<[Lines<Seat<P>>]>,
    /// The number of seats, from the first, that may have been taken at some time.
    pub(super) used: P::U32,
    pub(super) vigil: Vigil<P>,
    /// Not 0: the helper must end.
    pub(super) stopped: P::U32,
}

/// The facts about one loop.
pub(super) struct Seat<P: SharedWait> {
    // Written by the loop.
    /// The loop's thread; 0: the seat is free.
    pub(super) thread: P::U32,
    /// When the loop's next timer is due.
    pub(super) release: P::U64,
    /// How often the loop has published its release.
    pub(super) polls: P::U64,
    /// The part of its borrowed time that the loop still owes; includes all that it has borrowed
    /// after its last poll.
    pub(super) owed: P::U64,
    // Written by the helper.
    /// 1: the thread is, or is about to be, in a real-time class.
    pub(super) raised: P::U32,
    /// How often the thread was raised.
    pub(super) raises: P::U64,
    /// How long the thread ran while raised, in nanoseconds.
    pub(super) borrowed: P::U64,
    /// How often a raise was ended, by reason.
    pub(super) demotions: [P::U64; Demotion::ALL.len()],
    /// Number of times that the system refused to raise the thread.
    pub(super) refusals: P::U64,
}

impl<P: SharedWait> Seat<P> {
    fn new() -> Self {
        Self {
            thread: P::U32::ZERO,
            release: P::U64::ZERO,
            polls: P::U64::ZERO,
            owed: P::U64::ZERO,
            raised: P::U32::ZERO,
            raises: P::U64::ZERO,
            borrowed: P::U64::ZERO,
            demotions: [P::U64::ZERO; Demotion::ALL.len()],
            refusals: P::U64::ZERO,
        }
    }
}

/// A loop's seat, which belongs to the loop until it [leaves](Boosts::leave).
#[derive(Debug, PartialEq, Eq)]
pub struct Place(usize);

/// Counts of events of a loop, or of all loops that had its seat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often the loop was raised.
    pub raises: u64,
    /// How long the loop ran in a real-time class, in nanoseconds.
    pub borrowed_ns: u64,
    /// The part of `borrowed_ns` that the loop has yet to give back; between two polls, it includes
    /// all that was borrowed after the first of them.
    pub owed_ns: u64,
    /// How often a raise was ended before the loop had dispatched its timers, by [`Demotion`].
    pub demotions: [u64; Demotion::ALL.len()],
    /// How often the system refused to raise the loop, or the loop was real-time already.
    pub refusals: u64,
}

impl Counts {
    /// Returns the counts of the events after `before`.
    #[must_use]
    pub fn since(self, before: &Self) -> Self {
        Self {
            raises: self.raises - before.raises,
            borrowed_ns: self.borrowed_ns - before.borrowed_ns,
            owed_ns: self.owed_ns,
            demotions: core::array::from_fn(|at| self.demotions[at] - before.demotions[at]),
            refusals: self.refusals - before.refusals,
        }
    }
}

impl<P: SharedWait> Boosts<P> {
    /// Creates seats for `loops` loops.
    #[must_use]
    pub fn new(loops: usize) -> Self {
        let seats = (0..loops).map(|_| Lines(Seat::new())).collect();
        Self { seats, used: P::U32::ZERO, vigil: Vigil::NEW, stopped: P::U32::ZERO }
    }

    /// Takes a seat for a loop of the thread `thread`; returns `None` if all are taken. The loop
    /// has no timer yet.
    pub fn sit(&self, thread: ThreadId) -> Option<Place> {
        let at = self.seats.iter().position(|Lines(seat)| {
            // Acquire: `polls` goes on from the number of the previous owner; pairs with the
            // release in `leave`.
            // mutant: no model compares the polls of two owners of a seat.
            seat.thread.load(Relaxed) == 0
                && seat.thread.compare_exchange(0, thread.0, Acquire, Relaxed).is_ok()
        })?;
        let seat = &self.seats[at].0;
        // Relaxed: ordered by the fence in `tell`, after this store: it is visible with the
        // release.
        let mut used = self.used.load(Relaxed);
        while used <= at as u32
            && let Err(now) = self.used.compare_exchange(used, at as u32 + 1, Relaxed, Relaxed)
        {
            used = now;
        }
        // Relaxed: the helper reads it only after a release.
        seat.owed.store(0, Relaxed);
        // Relaxed: the helper reads nothing of a seat whose release never comes; the next release
        // carries the thread.
        seat.release.store(NEVER, Relaxed);
        Some(Place(at))
    }

    /// Called when a loop polls: it has dispatched all timers that were due, its next timer is due
    /// at `release_ns`, and it still owes `owed_ns`. Does not block; wakes the helper if that has
    /// something to do.
    pub fn publish(&self, place: &Place, release_ns: Option<u64>, owed_ns: u64) {
        let seat = &self.seats[place.0].0;
        // Relaxed: the loop's own word; the release carries it, and what is owed.
        let polls = seat.polls.load(Relaxed);
        seat.polls.store(polls + 1, Relaxed);
        seat.owed.store(owed_ns, Relaxed);
        self.set_release(seat, release_ns.map_or(NEVER, |at| at.min(NEVER)));
    }

    /// Gives a loop's seat up. On return, its thread is not raised, and never will be for this
    /// seat. Blocks until the helper has lowered the thread, if it is raised.
    pub fn leave(&self, place: Place) {
        let seat = &self.seats[place.0].0;
        self.set_release(seat, LEAVING);
        // Acquire: the thread was lowered; pairs with the release in `lowered`.
        while seat.raised.load(Acquire) != 0 {
            let _ = P::wait_shared(&seat.raised, 1, None);
        }
        // Release: the seat is ready for its next owner; pairs with the acquire in `sit`.
        // mutant: as there.
        seat.thread.store(0, Release);
    }

    fn set_release(&self, seat: &Seat<P>, release: u64) {
        // Release: `polls`, `owed`, and that the timers before were dispatched; pairs with the
        // acquires of the helper.
        seat.release.store(release, Release);
        // BOOST-1, and VIGIL-1; pairs with the fences in `announce` and `Vigil::settle`.
        self.vigil.tell(release);
        // Relaxed: ordered by the fence in `tell`.
        if seat.raised.load(Relaxed) != 0 {
            self.vigil.ring();
        }
    }

    /// Returns how often the loop was raised, and the total time that it has borrowed, in
    /// nanoseconds.
    #[must_use]
    pub fn borrowed(&self, place: &Place) -> (u64, u64) {
        let seat = &self.seats[place.0].0;
        // Relaxed: numbers that only grow, for an account.
        (seat.raises.load(Relaxed), seat.borrowed.load(Relaxed))
    }

    /// Returns whether the loop's thread is raised. May be stale at once.
    #[must_use]
    pub fn raised(&self, place: &Place) -> bool {
        // Relaxed: a hint.
        self.seats[place.0].0.raised.load(Relaxed) != 0
    }

    /// Returns the counts of the loop, and of those that had the seat before. May be stale at once.
    #[must_use]
    pub fn counts(&self, place: &Place) -> Counts {
        Self::counts_of(&self.seats[place.0].0)
    }

    /// Returns the counts of all loops, including those that have left.
    #[must_use]
    pub fn total(&self) -> Counts {
        self.seats.iter().map(|Lines(seat)| Self::counts_of(seat)).fold(
            Counts::default(),
            |sum, counts| Counts {
                raises: sum.raises + counts.raises,
                borrowed_ns: sum.borrowed_ns + counts.borrowed_ns,
                owed_ns: sum.owed_ns + counts.owed_ns,
                demotions: core::array::from_fn(|at| sum.demotions[at] + counts.demotions[at]),
                refusals: sum.refusals + counts.refusals,
            },
        )
    }

    fn counts_of(seat: &Seat<P>) -> Counts {
        // Relaxed: for a report.
        Counts {
            raises: seat.raises.load(Relaxed),
            borrowed_ns: seat.borrowed.load(Relaxed),
            owed_ns: seat.owed.load(Relaxed),
            demotions: core::array::from_fn(|at| seat.demotions[at].load(Relaxed)),
            refusals: seat.refusals.load(Relaxed),
        }
    }

    /// Makes the helper lower all loops and end. Does not block.
    pub fn stop(&self) {
        // Relaxed: a flag; `ring` carries it.
        self.stopped.store(1, Relaxed);
        self.vigil.ring();
    }
}

/// BOOST-1, the helper's part: writes that the thread is about to be raised, then returns whether
/// the loop is still late.
pub(super) fn announce<P: SharedWait>(seat: &Seat<P>, now_ns: u64) -> bool {
    // Relaxed: ordered by the fence.
    seat.raised.store(1, Relaxed);
    P::fence(SeqCst);
    // Acquire: the owner of the seat; pairs with the release in `set_release`.
    seat.release.load(Acquire) <= now_ns
}

/// Records that the thread shares time again; wakes the loop if it waits for that.
pub(super) fn lowered<P: SharedWait>(seat: &Seat<P>) {
    // Release: what was done; pairs with the acquire in `Boosts::leave`.
    seat.raised.store(0, Release);
    // The loop writes `release` and then waits on `raised`; here the order is the opposite.
    P::fence(SeqCst);
    // Relaxed: ordered by the fence.
    if seat.release.load(Relaxed) == LEAVING {
        P::wake_shared(&raw const seat.raised, u32::MAX);
    }
}
