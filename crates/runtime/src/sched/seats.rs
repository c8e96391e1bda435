//! The worker slots, and the workers that have them. A worker has its seat from its arrival until
//! it leaves, unless the seat is taken from it while it is in a task.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | each 2, a seat | `taken` | an arriving, a leaving worker; the claimer | not 0: it is taken |
//! | each 2, a worker | `seat` | an arriving, a leaving worker | its seat plus 1; 0: none |
//! | | `turn` | the worker | bit 0: it is outside; other bits: how many tasks it has begun |
//! | | `since_ns` | the claimer, a leaving worker | when it was first seen in its task; 0: never |
//! | | `claim` | the worker, the claimer | [`NONE`], [`ASKED`] or [`TAKEN`] |
//!
//! A worker is *inside* while it calls the policy, searches or rests; a task runs *outside*. So for
//! each task a worker makes two stores to its own line, and reads `claim` from it.
//!
//! ```text
//!                       ASKED, then seen outside
//!   ┌──────┐ ─────────────────────────────────────────► ┌───────┐
//!   │ NONE │      leaves it, inside                     │ TAKEN │ ──► NONE, when the worker goes
//!   └──────┘ ─────────────────────────────────────────► └───────┘
//! ```
//!
//! - SEAT-1 (one owner): the contents of a seat belong to its worker while it is inside, and to no
//!   other worker until the seat was taken from it or was left.
//! - SEAT-2 (asymmetric): a worker goes inside, then checks for a claim. A claiming thread makes a
//!   heavy fence, then checks whether the worker is inside. At least one of the two sees the other.
//!   If both do, the exchange of `claim` decides.
//! - SEAT-3 (same task): a thread sees the same turn twice only if it sees one worker in one task:
//!   workers that arrive and leave continue the count.
//! - SEAT-4: one thread at a time takes seats away.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use crate::lines::Lines;

/// The seats of a crew, and the workers that may have them.
pub(super) struct Seats<P: Platform> {
    taken: Box<[Lines<P::U32>]>,
    sitters: Box<[Lines<Sitter<P>>]>,
}

struct Sitter<P: Platform> {
    seat: P::U32,
    claim: P::U32,
    turn: P::U64,
    since_ns: P::U64,
}

/// A seat that a worker has, or had.
pub(super) struct Seat<'a, P: Platform> {
    seats: &'a Seats<P>,
    number: usize,
    sitter: &'a Sitter<P>,
    /// The number of the worker.
    worker: usize,
    turn: u64,
}

/// A task that a worker is in, or was in last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(u64);

const NONE: u32 = 0;
const ASKED: u32 = 1;
const TAKEN: u32 = 2;

const OUTSIDE: u64 = 1;
const TASK: u64 = 2;

impl<P: Platform> Seats<P> {
    /// Creates `seats` seats, for `workers` workers. If there are more workers than seats, the
    /// others are in a task, without a seat.
    pub(super) fn new(seats: usize, workers: usize) -> Self {
        let sitter = || Sitter {
            seat: P::U32::ZERO,
            claim: P::U32::ZERO,
            turn: P::U64::ZERO,
            since_ns: P::U64::ZERO,
        };
        Self {
            taken: (0..seats).map(|_| Lines(P::U32::ZERO)).collect(),
            sitters: (0..workers).map(|_| Lines(sitter())).collect(),
        }
    }

    /// Returns the limit of the number of workers.
    pub(super) fn sitters(&self) -> usize {
        self.sitters.len()
    }

    /// Takes a seat for an arriving worker. `None` if there is no such seat, another worker has it,
    /// or there are as many workers as permitted.
    pub(super) fn take(&self, number: usize) -> Option<Seat<'_, P>> {
        let (seat, name) = (&self.taken.get(number)?.0, number as u32 + 1);
        // Acquire: SEAT-1, the writes of its last owner; pairs with the release in `free`.
        seat.compare_exchange(0, 1, Acquire, Relaxed).ok()?;
        // Acquire: the turn of the last worker; pairs with the release in the drop.
        let is_free = |sitter: &Lines<Sitter<P>>| {
            sitter.0.seat.compare_exchange(0, name, Acquire, Relaxed).is_ok()
        };
        let Some(worker) = self.sitters.iter().position(is_free) else {
            self.free(number);
            return None;
        };
        let Lines(sitter) = &self.sitters[worker];
        // Inside, as the worker before left it, and as 0 is.
        let turn = sitter.turn.load(Relaxed).wrapping_add(TASK);
        // Relaxed: no thread sees a turn outside before `exit`.
        sitter.turn.store(turn, Relaxed);
        Some(Seat { seats: self, number, sitter, worker, turn })
    }

    /// Returns the task that a worker is in or was in last, and whether it is outside now; `None`:
    /// there is no such worker.
    pub(super) fn turn_of(&self, sitter: usize) -> Option<(Turn, bool)> {
        let Sitter { seat, turn, .. } = &self.sitters[sitter].0;
        // Acquire: the seat is not that of an earlier worker; pairs with the release in `exit`.
        let turn = turn.load(Acquire);
        // Relaxed: `take_from` checks again.
        let is_there = seat.load(Relaxed) != 0;
        is_there.then_some((Turn(turn | OUTSIDE), turn % TASK == OUTSIDE))
    }

    /// Returns the seat that a worker has, or had; `None`: there is no such worker. May be stale at
    /// once.
    pub(super) fn seat_of(&self, sitter: usize) -> Option<usize> {
        // Relaxed: a hint.
        self.sitters[sitter].0.seat.load(Relaxed).checked_sub(1).map(|seat| seat as usize)
    }

    /// Returns whether the worker has lost its seat.
    pub(super) fn is_away(&self, sitter: usize) -> bool {
        // Relaxed: a hint.
        self.sitters[sitter].0.claim.load(Relaxed) == TAKEN
    }

    /// Records that the seat of a worker was taken from it, and when it was first seen in its task.
    pub(super) fn note_since(&self, sitter: usize, since_ns: u64) {
        // Relaxed: a figure.
        self.sitters[sitter].0.since_ns.store(since_ns, Relaxed);
    }

    /// Returns when a worker that has lost its seat was first seen in its task; `None`: it is not
    /// away, or has left its seat by itself.
    pub(super) fn away_since_ns(&self, sitter: usize) -> Option<u64> {
        // Relaxed: a figure.
        let since_ns = self.sitters[sitter].0.since_ns.load(Relaxed);
        (self.is_away(sitter) && since_ns != 0).then_some(since_ns)
    }

    /// Returns how many seats are taken.
    pub(super) fn count(&self) -> usize {
        // Acquire: CREW-6, a worker that has left a seat is away; pairs with the release in `free`.
        self.taken.iter().filter(|seat| seat.0.load(Acquire) != 0).count()
    }

    /// Returns whether a worker that has lost its seat still exists.
    pub(super) fn is_any_away(&self) -> bool {
        // Acquire: CREW-6, the tasks that a worker has submitted before it ended; pairs with the
        // release in the drop.
        self.sitters.iter().any(|sitter| sitter.0.claim.load(Acquire) == TAKEN)
    }

    /// Takes the seat from a worker that is still in the task `seen`; the seat is free then. `None`
    /// if the worker is no longer in that task, or the platform has no heavy fence.
    ///
    /// May be called by one thread at a time: SEAT-4.
    pub(super) fn take_from(&self, sitter: usize, seen: Turn) -> Option<usize> {
        let Sitter { seat, claim, turn, .. } = &self.sitters[sitter].0;
        // Relaxed: SEAT-3, if the seat is another worker's, so is the turn, below.
        let number = seat.load(Relaxed).checked_sub(1)? as usize;
        // Relaxed, both: the fence below acquires.
        claim.compare_exchange(NONE, ASKED, Relaxed, Relaxed).ok()?;
        // SEAT-2: pairs with the light fence in `enter`, also that of a worker that was asked
        // before. SEAT-3, that a worker has ended: pairs with the release in the drop.
        let fenced = P::heavy_fence().is_ok();
        // Acquire: SEAT-1, the worker's writes while inside; pairs with the release in `exit`.
        let next = if fenced && turn.load(Acquire) == seen.0 { TAKEN } else { NONE };
        // Relaxed: the turn, and the seat, order what is handed over.
        let decided = claim.compare_exchange(ASKED, next, Relaxed, Relaxed).is_ok();
        (decided && next == TAKEN).then(|| {
            self.free(number);
            number
        })
    }

    fn free(&self, number: usize) {
        // Release: SEAT-1; pairs with the acquire in `take`.
        self.taken[number].0.store(0, Release);
    }
}

impl Turn {
    /// The turn as a number.
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

impl<P: Platform> Seat<'_, P> {
    /// The number of the worker.
    pub(super) fn worker(&self) -> usize {
        self.worker
    }

    pub(super) fn is_here(&self) -> bool {
        // Relaxed: a hint.
        self.sitter.claim.load(Relaxed) != TAKEN
    }

    /// Moves the worker inside; `false` if its seat was taken from it.
    #[inline]
    #[must_use]
    pub(super) fn enter(&mut self) -> bool {
        self.turn &= !OUTSIDE;
        // Relaxed, both: SEAT-2, ordered by the fence; pairs with the heavy one in `take_from`.
        self.sitter.turn.store(self.turn, Relaxed);
        P::light_fence();
        self.sitter.claim.load(Relaxed) == NONE || self.insist()
    }

    /// Handles a claim; returns whether the worker still has its seat.
    #[cold]
    fn insist(&mut self) -> bool {
        // Relaxed: a thread that claims after this sees that the worker is inside, because its
        // heavy fence comes after the light one in `enter`, which has preceded the load of the
        // earlier claim.
        let has_seat =
            self.sitter.claim.compare_exchange(ASKED, NONE, Relaxed, Relaxed) != Err(TAKEN);
        if !has_seat {
            // The worker goes on with its task.
            self.exit();
        }
        has_seat
    }

    /// Moves the worker outside, to the task that it was in.
    #[inline]
    pub(super) fn exit(&mut self) {
        self.turn |= OUTSIDE;
        // Release: SEAT-1; pairs with the acquire in `take_from`.
        self.sitter.turn.store(self.turn, Release);
    }

    /// Moves the worker outside, to a new task.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.turn = self.turn.wrapping_add(TASK);
        self.exit();
    }

    /// Gives up the seat of the worker, which is inside; it has none from now on.
    pub(super) fn leave(&mut self) {
        // Relaxed: a figure.
        self.sitter.since_ns.store(0, Relaxed);
        // Relaxed: a claiming thread sees the worker inside.
        self.sitter.claim.store(TAKEN, Relaxed);
        self.seats.free(self.number);
    }
}

impl<P: Platform> Drop for Seat<'_, P> {
    fn drop(&mut self) {
        if self.enter() {
            self.seats.free(self.number);
        } else {
            // Inside, for a thread that claims after this. Relaxed: published with the claim.
            self.sitter.turn.store(self.turn & !OUTSIDE, Relaxed);
            // Release: SEAT-3, that the worker has ended; CREW-6, the tasks that it has submitted;
            // pairs with the fence in `take_from` and the acquire in `is_any_away`.
            self.sitter.claim.store(NONE, Release);
        }
        // Release: SEAT-3; the turn; pairs with the acquire in `take`.
        self.sitter.seat.store(0, Release);
    }
}
