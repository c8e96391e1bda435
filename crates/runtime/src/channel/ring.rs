//! A ring of slots for any number of producers and consumers.
//!
//! | lines | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `tail` | producers | values that were put in, or are about to be |
//! | 2–3 | `head` | consumers | values that were taken out, or are about to be |
//! | 4 … | `slots` | both, in turn | a value each, and its lap |
//!
//! | `lap` of a slot | meaning |
//! |---|---|
//! | 2·n | empty, for the producer of lap `n` |
//! | 2·n + 1 | full, by that producer |
//!
//! After Vyukov's bounded queue (1024cores.net, 2010), with a lap in place of a position, so that a
//! ring may have a single slot.
//!
//! - SLOT-1: only the producer that moves `tail` past a slot that is empty in its lap fills it;
//!   only the consumer that moves `head` past a full one empties it.
//! - SLOT-2: a thread that was stopped in between leaves the slot in its old state. The ring may
//!   then be reported full or empty when it isn't, because values or room behind that slot can't be
//!   reached. When that thread goes on, it notifies the waiters afterwards; and a thread that gets
//!   past the slot notifies waiters that were notified without success of what is behind it
//!   (CHAN-3).

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::cmp::Ordering::{Equal, Greater, Less};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use crate::lines::Lines;

pub(super) struct Ring<P: Platform, T> {
    tail: Lines<P::U64>,
    head: Lines<P::U64>,
    slots: Box<[Slot<P, T>]>,
    /// The binary logarithm of the number of slots.
    bits: u32,
}

struct Slot<P: Platform, T> {
    lap: P::U64,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: a value is put in by one thread and taken out by one; SLOT-1 says which one has a slot.
unsafe impl<P: Platform, T: Send> Sync for Ring<P, T> {}
// SAFETY: the values are `Send`, and each slot has one user at a time (SLOT-1).
unsafe impl<P: Platform, T: Send> Send for Ring<P, T> {}

impl<P: Platform, T> Ring<P, T> {
    /// Creates a ring with room for `room` values, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// If `room` is 0, or more than 2³¹.
    pub(super) fn new(room: usize) -> Self {
        assert!(
            (1..=1 << 31).contains(&room),
            "a channel with room for {room}: it must be from 1 to 2^31"
        );
        let room = room.next_power_of_two();
        let slot = || Slot { lap: P::U64::ZERO, value: UnsafeCell::new(MaybeUninit::uninit()) };
        Self {
            tail: Lines(P::U64::ZERO),
            head: Lines(P::U64::ZERO),
            slots: (0..room).map(|_| slot()).collect(),
            bits: room.trailing_zeros(),
        }
    }

    pub(super) fn room(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of values, including those being put in; may be stale at once.
    pub(super) fn count(&self) -> usize {
        // Relaxed, both: a hint.
        let head = self.head.0.load(Relaxed);
        let count = self.tail.0.load(Relaxed).saturating_sub(head);
        usize::try_from(count).unwrap_or(usize::MAX).min(self.room())
    }

    /// Puts a value in. Does not block.
    ///
    /// # Errors
    ///
    /// The value, if there is no room, or a consumer was stopped (SLOT-2).
    pub(super) fn push(&self, value: T) -> Result<(), T> {
        // Acquire: the slot is empty, as its consumer left it; pairs with the release in `pop`.
        let Some((slot, lap)) = self.claim(&self.tail.0, 0) else { return Err(value) };
        // SAFETY: SLOT-1, it is ours.
        unsafe { (*slot.value.get()).write(value) };
        // Release: SLOT-1, the value; pairs with the acquire in `claim`.
        slot.lap.store(lap + 1, Release);
        Ok(())
    }

    /// Takes a value out. Does not block. `None`: there is none, or a producer was stopped
    /// (SLOT-2).
    pub(super) fn pop(&self) -> Option<T> {
        let (slot, lap) = self.claim(&self.head.0, 1)?;
        // SAFETY: SLOT-1, the slot is the caller's, and full.
        let value = unsafe { (*slot.value.get()).assume_init_read() };
        // Release: the value has been read; pairs with the acquire in `claim`.
        slot.lap.store(lap + 1, Release);
        Some(value)
    }

    /// Returns whether the first value can be taken out: not if its producer was stopped (SLOT-2).
    pub(super) fn has_next(&self) -> bool {
        self.is_ready(&self.head.0, 1)
    }

    /// Returns whether a value can be put in: not if the consumer of its slot was stopped (SLOT-2).
    pub(super) fn has_room(&self) -> bool {
        self.is_ready(&self.tail.0, 0)
    }

    /// Returns whether the slot at an end is in the state for it.
    fn is_ready(&self, end: &P::U64, state: u64) -> bool {
        loop {
            // Relaxed: a number.
            let at = end.load(Relaxed);
            let lap = &self.slots[at as usize & (self.slots.len() - 1)].lap;
            // Acquire: as in `claim`.
            match lap.load(Acquire).cmp(&((at >> self.bits << 1) + state)) {
                Less => return false,
                Equal => return true,
                // Others have moved the end past it.
                Greater => {}
            }
        }
    }

    /// Moves an end past its slot, if that is in the state for it (0: empty, 1: full). Returns the
    /// slot, and its lap.
    #[inline]
    fn claim(&self, end: &P::U64, state: u64) -> Option<(&Slot<P, T>, u64)> {
        // Relaxed, here and at the exchanges: a number; the lap orders the accesses to the slot.
        let mut at = end.load(Relaxed);
        loop {
            let slot = &self.slots[at as usize & (self.slots.len() - 1)];
            let wanted = (at >> self.bits << 1) + state;
            // Acquire: SLOT-1, the value, or that it was taken out; pairs with the releases in
            // `push` and `pop`.
            // mutant: models don't see the value in the slot, which is plain memory; what was done
            // before it was sent is ordered by the fence that the channel needs for its waiters.
            let lap = slot.lap.load(Acquire);
            if lap == wanted {
                match end.compare_exchange(at, at + 1, Relaxed, Relaxed) {
                    Ok(_) => return Some((slot, lap)),
                    Err(now) => at = now,
                }
            } else if lap < wanted {
                return None;
            } else {
                // Others have moved the end past it.
                at = end.load(Relaxed);
            }
        }
    }
}

impl<P: Platform, T> Drop for Ring<P, T> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
