//! A deque whose last item is in a separate slot; thieves may take it when it is old enough.
//!
//! | lines | field | written by | read by |
//! |---|---|---|---|
//! | | `deque` | the owner, thieves | all |
//! | the last two | `item`: the last that was put in, or 0 | the owner, thieves | all |
//! | | `since`: when it was put in, in nanoseconds | the owner | thieves |
//!
//! The next item moves the item in the slot to the back of the deque. So an owner that takes the
//! slot first and then the front runs the newest task while its data is in the cache, and all
//! others in the order in which they came.
//!
//! - SLOTTED-1: an item belongs to the slot from when the owner puts it there until the exchange of
//!   the thread that takes it out.
//! - SLOTTED-2: the slot is not free while its item moves to the deque: the next item is there
//!   already. So a thread that checks the slot first and then the deque sees any item that is
//!   there.
//! - SLOTTED-3: thieves leave an item that is younger than `age_ns`, and are told to retry.
//!
//! Go and Tokio have such a slot, from which thieves take nothing, or only if its worker sleeps; in
//! Kotlin's coroutines its item may be stolen when it is 100 µs old. The time is a hint: a thief
//! that reads the time of the item before takes the new item too early.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Clock, Platform};

use super::{Deque, Full, Item, Lines, Stolen, WorkQueue};

/// A deque with a slot, of one owner and any number of thieves.
pub struct Slotted<P: Platform> {
    deque: Deque<P>,
    slot: Lines<Slot<P>>,
    age_ns: u64,
}

struct Slot<P: Platform> {
    item: P::U64,
    since: P::U64,
}

impl<P: Platform> Slotted<P> {
    /// An empty deque with room for an item in the slot, which thieves may take when it is `age_ns`
    /// nanoseconds old, and for `capacity` others, growing to `most`: see [`Deque::new`].
    ///
    /// # Panics
    ///
    /// The same as for [`Deque::new`].
    #[must_use]
    pub fn new(capacity: usize, most: usize, age_ns: u64) -> Self {
        let slot = Slot { item: P::U64::ZERO, since: P::U64::ZERO };
        Self { deque: Deque::new(capacity, most), slot: Lines(slot), age_ns }
    }

    /// Takes the item in the slot.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    pub unsafe fn pop_slot(&self) -> Option<Item> {
        let item = &self.slot.0.item;
        // Relaxed: the owner put it there.
        if item.load(Relaxed) == 0 {
            return None;
        }
        // Release: SLOTTED-2, what is in the deque; pairs with the acquire in `is_empty`.
        Item::new(item.swap(0, Release))
    }

    /// Takes the item in the slot; called by a thief.
    fn steal_slot(&self) -> Stolen {
        let Slot { item: word, since } = &self.slot.0;
        // Relaxed: the exchange acquires.
        let Some(item) = Item::new(word.load(Relaxed)) else { return Stolen::Empty };
        // SLOTTED-3. Relaxed: a hint.
        if P::now(Clock::Monotonic).saturating_sub(since.load(Relaxed)) < self.age_ns {
            return Stolen::Retry;
        }
        // SLOTTED-1. Acquire: pairs with the release in `push`.
        match word.compare_exchange(item.word(), 0, Acquire, Relaxed) {
            Ok(_) => Stolen::Got(item),
            Err(_) => Stolen::Retry,
        }
    }
}

impl<P: Platform> WorkQueue for Slotted<P> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        let Slot { item: word, since } = &self.slot.0;
        // Relaxed: the owner put it there.
        let taken = word.load(Relaxed) != 0;
        if taken && !self.deque.has_room() {
            return Err(Full(item));
        }
        // Relaxed: a hint.
        since.store(P::now(Clock::Monotonic), Relaxed);
        if !taken {
            // Release: what came before; pairs with the acquire in `steal_slot`.
            word.store(item.word(), Release);
            return Ok(());
        }
        // SLOTTED-2. Release: what came before; pairs with the acquire in `steal_slot`.
        match Item::new(word.swap(item.word(), Release)) {
            // SAFETY: the caller's promise.
            Some(before) => unsafe { self.deque.push(before) },
            None => Ok(()),
        }
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        // SAFETY: the caller's promise.
        unsafe { self.pop_slot().or_else(|| self.deque.pop_back()) }
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        // SAFETY: the caller's promise.
        unsafe { self.deque.pop_front().or_else(|| self.pop_slot()) }
    }

    unsafe fn share(&self) -> bool {
        // Thieves can take all items already, or will when the slot's item is old.
        true
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        // SAFETY: the caller's promise.
        match unsafe { self.deque.steal_into(&mine.deque, share) } {
            Stolen::Empty => self.steal_slot(),
            told => told,
        }
    }

    fn is_empty(&self) -> bool {
        // Acquire: SLOTTED-2, the deque is not older; pairs with the release in `pop_slot`.
        self.slot.0.item.load(Acquire) == 0 && self.deque.is_empty()
    }

    fn count(&self) -> u64 {
        // Relaxed: a guess.
        u64::from(self.slot.0.item.load(Relaxed) != 0) + self.deque.count()
    }
}
