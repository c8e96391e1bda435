//! The ring of a mailbox: messages of many posters, in one order, each delivered once.
//!
//! | line | field | written by | read by |
//! |---|---|---|---|
//! | 0 | `tail`: how many slots were claimed, and `CLOSED` | posters | posters |
//! | 0 | `head_seen`: a `head` that some poster has seen | posters | posters |
//! | 1 | `head`: how many slots are free again | the owner | posters that find no room |
//! | each slot | `stamp`, `action`, `payload` | the poster that has claimed it | the owner |
//!
//! ```text
//!          claim (exchange of `tail`)        stamp = position + 1          head > position
//!   free ─────────────────────────► claimed ──────────────────► filled ──────────────────► free
//! ```
//!
//! A slot is one cache line with its payload, and the owner waits on the stamp of the next slot: a
//! message to an owner that polls costs one transfer of one line. Positions never wrap; a stamp is
//! the low half of a position, which is enough to tell a slot's lap from the previous one.
//!
//! - RING-1: a position is claimed by one poster, and not before the owner has read the message of
//!   the previous lap in its slot.
//! - RING-2: a thread that sees a stamp sees the message, and the earlier accesses of its poster.
//! - RING-3: no position is claimed after the ring was closed: the positions that were claimed
//!   before are the last ones, and are filled soon.
//!
//! # As measured
//!
//! One way between two threads that poll by turns, against a bare hand-off by spinning, which took
//! 102 to 130 ns; medians of 9 to 15 interleaved rounds, the range of 7 to 14 processes, as where
//! the allocator puts the lines matters. Two CPUs (Xeon, 2.5 GHz, virtual), 2026-11-22.
//!
//! | lines that are written to | `poll` | `wait` |
//! |---|---|---|
//! | two apart, the owner's place on its own: this one | 1.26 to 1.56 | 1.47 to 1.69 |
//! | neighbours, the owner's place on its own | 1.27 to 2.05 | 3.7 to 5.9, counted as a spinner |
//! | neighbours, two owners' places on one | 2.27 to 2.60 | |
//!
//! Without any of what a table of actions and a sleeping owner need (a claim, fences, an indirect
//! call) a ring of such slots takes 1.0 to 1.1. `cargo run --release -p antiphon-runtime --example
//! rates` measures this one: of those processes the median is 1.40 for `poll` and 1.59 for `wait`.
//!
//! # Turned down, as measured
//!
//! Two CPUs, gaps of nothing, 256 slots, messages of three words; medians of seven interleaved
//! rounds, 2026-11-22. A sketch of each layout, one thread to another, on a shared and noisy host:
//! between slots of 32 and 64 bytes the order was another with 16 or 64 slots. A bare hand-off by
//! spinning took 135 ns one way.
//!
//! | layout | latency | millions a second |
//! |---|---|---|
//! | this one | 211 ns | 15.1 |
//! | slots of 32 bytes, two a line | 218 ns | 11.2 |
//! | … and `head` stored after each message | 206 ns | 11.8 |
//! | the owner stamps slots free, as in Vyukov's queue; no `head` | 244 ns | 13.1 |
//! | … slots of 32 bytes | 250 ns | 11.8 |
//! | room counted down, and `tail` added to: no exchange to repeat | 331 ns | 6.3 |
//!
//! Freeing by a stamp makes the owner write to each line that it has just received. Counting room
//! makes posters and the owner share a line for each message.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Platform};

use super::{ActionId, Message};
use crate::lines::Lines;

/// The reason why a message was refused.
#[derive(Debug)]
pub(super) enum Refusal {
    Full,
    Closed,
}

/// A bounded queue with many producers; its one consumer is the thread that holds the [`Cursor`].
pub(super) struct Ring<P: Platform> {
    ends: Lines<Ends<P>>,
    head: Lines<P::U64>,
    slots: Box<[Slot<P>]>,
}

struct Ends<P: Platform> {
    tail: P::U64,
    head_seen: P::U64,
}

#[repr(C, align(64))]
struct Slot<P: Platform> {
    stamp: P::U32,
    action: P::U32,
    payload: [P::U64; 3],
}

/// The bit of `tail` that marks a closed ring.
const CLOSED: u64 = 1 << 63;
/// The greatest number of slots of a ring: a stamp can distinguish two laps of that many slots.
pub(super) const MOST: usize = 1 << 31;

/// The owner's position in a ring.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    /// The position to read next.
    next: u64,
    /// The value of `head`.
    freed: u64,
}

impl<P: Platform> Ring<P> {
    /// Creates a ring of at least `capacity` slots, rounded up to a power of two. Panics beyond
    /// [`MOST`].
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity <= MOST, "a mailbox for {capacity} messages: at most {MOST} are possible");
        let slot = |_| Slot {
            stamp: P::U32::ZERO,
            action: P::U32::ZERO,
            payload: [const { P::U64::ZERO }; 3],
        };
        Self {
            ends: Lines(Ends { tail: P::U64::ZERO, head_seen: P::U64::ZERO }),
            head: Lines(P::U64::ZERO),
            slots: (0..capacity.max(1).next_power_of_two()).map(slot).collect(),
        }
    }

    fn slot(&self, position: u64) -> &Slot<P> {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Appends a message. Does not block.
    pub(super) fn push(&self, message: &Message) -> Result<(), Refusal> {
        let position = self.claim()?;
        let slot = self.slot(position);
        // Relaxed: published by the stamp.
        for (word, value) in slot.payload.iter().zip(message.payload) {
            word.store(value, Relaxed);
        }
        slot.action.store(message.action.bits(), Relaxed);
        // Release: RING-2; pairs with the acquires in `pop`, `ready` and `spin`.
        slot.stamp.store(stamp(position), Release);
        Ok(())
    }

    fn claim(&self) -> Result<u64, Refusal> {
        let ends = &self.ends.0;
        // Relaxed: the exchange decides which poster has claimed a slot, and `head` shows that it
        // is free.
        let mut tail = ends.tail.load(Relaxed);
        loop {
            if tail & CLOSED != 0 {
                return Err(Refusal::Closed);
            }
            if !self.has_room(tail) {
                return Err(Refusal::Full);
            }
            match ends.tail.compare_exchange(tail, tail + 1, Relaxed, Relaxed) {
                Ok(_) => return Ok(tail),
                Err(now) => tail = now,
            }
        }
    }

    /// RING-1: returns whether the slot of position `tail` is free. `tail` may be behind `head` by
    /// now: then the exchange fails.
    fn has_room(&self, tail: u64) -> bool {
        let capacity = self.slots.len() as u64;
        let seen = &self.ends.0.head_seen;
        // Acquire: the owner has read the slot; pairs with the release below.
        if tail < seen.load(Acquire) + capacity {
            return true;
        }
        // Acquire: as above; pairs with the release in `free`.
        let head = self.head.0.load(Acquire);
        // Release: pairs with the acquire above.
        seen.store(head, Release);
        tail < head + capacity
    }

    /// Closes the ring for further messages; those claimed before can still be [taken
    /// out](Self::pop). Returns the end of these.
    pub(super) fn close(&self) -> u64 {
        // Relaxed: posters claim by exchanges of the same word.
        self.ends.0.tail.fetch_or(CLOSED, Relaxed) & !CLOSED
    }

    /// Returns whether a message is ready for the owner.
    pub(super) fn ready(&self, at: &Cursor) -> bool {
        self.spin(at, Budget::NONE)
    }

    /// Spins until a message is ready; returns `false` if the budget is spent first.
    pub(super) fn spin(&self, at: &Cursor, budget: Budget) -> bool {
        let due = stamp(at.next);
        // Relaxed: it only shows whether there is a message; `pop` acquires it.
        self.slot(at.next).stamp.spin_while(Relaxed, budget, |stamp| stamp != due).is_ok()
    }

    /// Takes the next message out, if it is ready. The slot is not free before
    /// [`free`](Self::free).
    pub(super) fn pop(&self, at: &mut Cursor) -> Option<Message> {
        let slot = self.slot(at.next);
        // Acquire: RING-2; pairs with the release in `push`.
        (slot.stamp.load(Acquire) == stamp(at.next)).then(|| Self::read(slot, at))
    }

    /// Like [`pop`](Self::pop), for a slot that was claimed: waits until it is filled. `None` at
    /// `end`.
    pub(super) fn pop_claimed(&self, at: &mut Cursor, end: u64) -> Option<Message> {
        if at.next == end {
            return None;
        }
        let (slot, due) = (self.slot(at.next), stamp(at.next));
        // Acquire: as in `pop`.
        slot.stamp.wait_while(Acquire, |stamp| stamp != due);
        Some(Self::read(slot, at))
    }

    fn read(slot: &Slot<P>, at: &mut Cursor) -> Message {
        at.next += 1;
        // Relaxed: acquired with the stamp.
        Message {
            action: ActionId::from_bits(slot.action.load(Relaxed)),
            payload: slot.payload.each_ref().map(|word| word.load(Relaxed)),
        }
    }

    /// Frees the slots whose messages were taken out; returns their number.
    pub(super) fn free(&self, at: &mut Cursor) -> u64 {
        let freed = at.next - at.freed;
        if freed != 0 {
            // Release: RING-1; pairs with the acquire in `has_room`.
            self.head.0.store(at.next, Release);
            at.freed = at.next;
        }
        freed
    }
}

/// Returns the stamp of a filled slot at a position. Never zero in the first lap.
fn stamp(position: u64) -> u32 {
    (position as u32).wrapping_add(1)
}
