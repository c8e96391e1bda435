//! The relaxed queue: any thread puts items in and takes them out, each by one addition and one
//! exchange.
//!
//! | lines | field | meaning |
//! |---|---|---|
//! | 0–1 | `head` | how many positions were drawn by consumers |
//! | 2–3 | `tail` | how many positions were drawn by producers |
//! | | `cells` | one word each; a position has the same cell in each lap |
//!
//! A thread draws a position, and uses its cell: a producer puts its item in if the cell is free, a
//! consumer takes the item out if the cell is filled. A cell is emptied as often as it is filled,
//! so a thread that finds the opposite need only wait. A thread that does not want to wait (the
//! partner may have been stopped between its draw and its cell) leaves a debt in the cell, and
//! draws again. The partner finds the debt, settles it, and draws again as well.
//!
//! | a cell's word | meaning |
//! |---|---|
//! | 0 | free |
//! | an item, and in its lowest 3 bits `s` | filled; `s` producers have left |
//! | 1 … 2047 | free; this many consumers have left |
//! | 4096 - `s` | free; `s` producers have left |
//!
//! ```text
//!                    put in                       leave (producer)
//!       0 ◄────────────────────────► item, s = 0 ─────────────────────► item, s + 1
//!       │           take out                                                │ take out
//!       │ leave (consumer)                                                  ▼
//!       ▼             put in: go elsewhere            take out: go elsewhere
//!     1, 2 … ─────────────────────────────► 0 ◄──────────────────────── 4096 - s
//! ```
//!
//! - RLX-1: an item is in a cell from the exchange of the producer that puts it in to that of the
//!   consumer that takes it out.
//! - RLX-2: for a cell, and not counting threads on the way, the number of positions drawn to put
//!   in, less those drawn to take out, equals its items plus its producers' debts, less its
//!   consumers' debts. So if as many were drawn to take out as to put in, each item has a consumer
//!   on its way.
//! - RLX-3: no thread waits longer than `PATIENCE` for a stopped thread, except a thread that finds
//!   a cell with as many debts as it has room for.
//! - RLX-4: a thread that sees that a position was drawn to take out also sees all that the drawing
//!   thread had put in before. So an answer that the queue is empty is right for some moment of the
//!   call.
//!
//! The additions are from Kappes and Anastasiadis, "A lock-free relaxed concurrent queue for fast
//! work distribution" (PPoPP 2021), which the dissertation uses: there a thread that overshoots
//! rolls the index back, and a thread that is stopped between its draw and its cell stops its
//! partner with it.
//!
//! The order is first in, first out except for threads between their draw and their cell: two items
//! that are put in on different laps of one cell may change places.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Platform};

use super::{Full, Item, Lines};

/// A bounded queue of many producers and many consumers.
pub struct RelaxedQueue<P: Platform> {
    head: Lines<P::U64>,
    tail: Lines<P::U64>,
    cells: Box<[P::U64]>,
}

/// How long a thread waits at its cell for the other side.
const PATIENCE: Budget = Budget::ns(2_000);

impl<P: Platform> RelaxedQueue<P> {
    /// An empty queue with room for `capacity` items, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// If `capacity` is above 2³¹.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity <= 1 << 31, "{capacity} items");
        Self {
            head: Lines(P::U64::ZERO),
            tail: Lines(P::U64::ZERO),
            cells: (0..capacity.max(1).next_power_of_two()).map(|_| P::U64::ZERO).collect(),
        }
    }

    /// Returns the number of items, except those on the way; may be stale at once.
    pub fn len(&self) -> u64 {
        self.drawn().max(0) as u64
    }

    /// Returns whether the queue seems to be empty; may be stale at once.
    pub fn is_empty(&self) -> bool {
        self.drawn() <= 0
    }

    /// Returns how many positions producers have drawn.
    pub(super) fn drawn_to_put(&self) -> u64 {
        // Relaxed: a thread that has seen a head in `drawn` has also seen the tails before it.
        self.tail.0.load(Relaxed)
    }

    /// Returns by how many positions producers are ahead of consumers.
    fn drawn(&self) -> i64 {
        // Acquire: RLX-4; pairs with the release in `pop`. Relaxed, the tail: it is not older than
        // the head.
        let head = self.head.0.load(Acquire);
        self.tail.0.load(Relaxed).wrapping_sub(head) as i64
    }

    /// Returns whether producers are ahead by as many positions as there are cells, or were at some
    /// moment of this call.
    fn is_full(&self) -> bool {
        // Relaxed, both: a thread that is wrong waits in its cell. The tail first: a thread that is
        // stopped between the two loads then finds room, and is not misled because others have
        // moved on.
        let tail = self.tail.0.load(Relaxed);
        tail.wrapping_sub(self.head.0.load(Relaxed)) as i64 >= self.cells.len() as i64
    }

    /// Puts an item in. Blocks only as RLX-3 says.
    ///
    /// # Errors
    ///
    /// If there is no room, or other producers are about to take all of it.
    pub fn push(&self, item: Item) -> Result<(), Full> {
        while !self.is_full() {
            // Relaxed: RLX-2 is only about numbers.
            if fill::<P>(self.cell(self.tail.0.fetch_add(1, Relaxed)), item) {
                return Ok(());
            }
        }
        Err(Full(item))
    }

    /// Takes an item out, if the queue has one that no other thread is about to take.
    pub fn pop(&self) -> Option<Item> {
        while self.drawn() > 0 {
            // Release: RLX-4; pairs with the acquire in `drawn`.
            let position = self.head.0.fetch_add(1, Release);
            // Relaxed: a guess; a wrong one costs a wait, or an early debt.
            let overshot = position >= self.tail.0.load(Relaxed);
            let patience = if overshot { Budget::NONE } else { PATIENCE };
            if let Some(item) = empty::<P>(self.cell(position), patience) {
                return Some(item);
            }
        }
        None
    }

    /// Returns the cell of a position. Consecutive positions are on different lines, if there are
    /// enough lines.
    fn cell(&self, position: u64) -> &P::U64 {
        const A_LINE: usize = 8;
        let place = position as usize & (self.cells.len() - 1);
        let lines = self.cells.len() / A_LINE;
        &self.cells[if lines > 1 { place % lines * A_LINE + place / lines } else { place }]
    }
}

/// A cell's word.
#[derive(Clone, Copy)]
enum State {
    /// With this many debts of producers.
    Filled(Item, u64),
    /// With this many debts of producers.
    Free(u64),
    /// Free, with this many debts of consumers, at least one.
    Left(u64),
}

/// The most debts that a cell can have beside an item.
const BESIDE: u64 = Item::ALIGN - 1;
/// The most debts of consumers.
const MOST_LEFT: u64 = Item::LEAST / 2 - 1;

impl State {
    const fn of(word: u64) -> Self {
        match Item::new(word & !BESIDE) {
            Some(item) => Self::Filled(item, word & BESIDE),
            None if word == 0 => Self::Free(0),
            None if word <= MOST_LEFT => Self::Left(word),
            None => Self::Free(Item::LEAST - word),
        }
    }

    const fn word(self) -> u64 {
        match self {
            Self::Filled(item, debts) => item.word() + debts,
            Self::Free(0) | Self::Left(0) => 0,
            Self::Free(debts) => Item::LEAST - debts,
            Self::Left(debts) => debts,
        }
    }
}

/// Puts an item into the cell that was drawn; returns `false` if the caller must draw again.
fn fill<P: Platform>(cell: &P::U64, item: Item) -> bool {
    // Relaxed, here and below: a consumer that takes the item acquires it.
    let mut seen = cell.load(Relaxed);
    loop {
        let (then, done) = match State::of(seen) {
            State::Free(debts) => (State::Filled(item, debts), true),
            State::Left(debts) => (State::Left(debts - 1), false),
            State::Filled(there, debts) => {
                if let Some(now) = wait::<P>(cell, seen, PATIENCE, debts < BESIDE) {
                    seen = now;
                    continue;
                }
                (State::Filled(there, debts + 1), false)
            }
        };
        // Release: the item; pairs with the acquire in `empty`.
        match cell.compare_exchange(seen, then.word(), Release, Relaxed) {
            Ok(_) => return done,
            Err(now) => seen = now,
        }
    }
}

/// Takes an item out of the cell that was drawn; returns `None` if the caller must draw again.
fn empty<P: Platform>(cell: &P::U64, patience: Budget) -> Option<Item> {
    // Relaxed: the exchange acquires it.
    let mut seen = cell.load(Relaxed);
    loop {
        let (then, item) = match State::of(seen) {
            State::Filled(item, debts) => (State::Free(debts), Some(item)),
            State::Free(debts @ 1..) => (State::Free(debts - 1), None),
            State::Free(0) | State::Left(_) => {
                if let Some(now) = wait::<P>(cell, seen, patience, seen < MOST_LEFT) {
                    seen = now;
                    continue;
                }
                (State::Left(seen + 1), None)
            }
        };
        // Acquire: RLX-1; pairs with the release in `fill`.
        match cell.compare_exchange(seen, then.word(), Acquire, Relaxed) {
            Ok(_) => return item,
            Err(now) => seen = now,
        }
    }
}

/// Waits until the cell has another word than `seen`, and returns it; returns `None` if the caller
/// may leave a debt.
fn wait<P: Platform>(cell: &P::U64, seen: u64, patience: Budget, may_leave: bool) -> Option<u64> {
    let keep = |word| word == seen;
    // Relaxed, both: the exchange that follows acquires.
    if may_leave {
        cell.spin_while(Relaxed, patience, keep).ok()
    } else {
        Some(cell.wait_while(Relaxed, keep))
    }
}
