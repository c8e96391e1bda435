//! The common part of a worker's deques: the two ends, from one of which thieves take items.
//!
//! | lines | field | written by | read by |
//! |---|---|---|---|
//! | 0–1 | `head`: the position of the first item | the owner, thieves | all |
//! | 2–3 | `tail`: the position behind the last item | the owner | all |
//! | 4 | `slots` | the owner, when it grows | all |
//!
//! The item of position `n` is in the slot `n` modulo the capacity. Positions are 64 bits, `head`
//! never goes back, and only the distance between them matters: should one ever pass 2⁶⁴, only a
//! thief that has slept since the positions last had the same values could notice.
//!
//! - ENDS-1: a thread that moves `head` from `h` to `h + n` by an exchange, with `n` below the
//!   capacity, has the items of these positions; no other thread has them, and none of their slots
//!   is written before that.
//! - ENDS-2: the owner lowers `tail` first and then loads `head`, with a fence between; a thief
//!   loads `head` first and then `tail`, also with a fence between. So one of the two sees the
//!   other.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Platform};

use super::slots::{Array, Slots};
use super::{Full, Item, Lines, Stolen};

/// The ends of a deque, and its slots.
pub(super) struct Ends<P: Platform> {
    pub(super) head: Lines<P::U64>,
    pub(super) tail: Lines<P::U64>,
    pub(super) slots: Slots<P>,
}

/// The state of a deque as a thief has seen it.
pub(super) struct There<'a, P: Platform> {
    pub(super) head: u64,
    pub(super) size: u64,
    pub(super) array: &'a Array<P>,
}

/// Returns by how much one position is ahead of another.
pub(super) fn ahead(one: u64, other: u64) -> i64 {
    one.wrapping_sub(other) as i64
}

impl<P: Platform> Ends<P> {
    pub(super) fn new(capacity: usize, most: usize) -> Self {
        let zero = || Lines(P::U64::ZERO);
        Self { head: zero(), tail: zero(), slots: Slots::new(capacity, most) }
    }

    /// Returns the number of items as far as the caller can see; may be stale at once.
    pub(super) fn len(&self) -> u64 {
        // Acquire, both: the tail is not older than the head, nor the array older than the tail. An
        // item that is there is seen. Negative if items were taken between the two loads.
        let head = self.head.0.load(Acquire);
        ahead(self.tail.0.load(Acquire), head).max(0) as u64
    }

    /// For the owner: writes an item behind the last one, where no thief looks yet; returns the new
    /// value for `tail`.
    pub(super) fn write(&self, item: Item) -> Result<u64, Full> {
        let tail = self.tail.0.load(Relaxed);
        let mut array = self.slots.array();
        if self.used(tail) >= array.capacity() {
            array = self.slots.grow(tail).ok_or(Full(item))?;
        }
        // Relaxed: published by `tail`.
        array.slot(tail).store(item.word(), Relaxed);
        Ok(tail.wrapping_add(1))
    }

    /// For the owner: returns the position of the next item, and for how many items there is room
    /// without growing.
    pub(super) fn room(&self) -> (u64, u64) {
        let tail = self.tail.0.load(Relaxed);
        (tail, self.slots.array().capacity() - self.used(tail))
    }

    /// For the owner: returns whether [`write`](Self::write) has room.
    pub(super) fn has_room(&self) -> bool {
        self.room().1 > 0 || self.slots.may_grow()
    }

    /// Returns how many slots below `tail` must not be written to.
    fn used(&self, tail: u64) -> u64 {
        // Acquire: ENDS-1; pairs with the releases of the threads that take from the front.
        // mutant: only a load that reads what depends on it would tell, of which models have none.
        tail.wrapping_sub(self.head.0.load(Acquire))
    }

    /// For the owner: takes the item at the front.
    pub(super) fn pop_front(&self) -> Option<Item> {
        let tail = self.tail.0.load(Relaxed);
        let mut head = self.head.0.load(Relaxed);
        while head != tail {
            let first = self.slots.array().item(head);
            let next = head.wrapping_add(1);
            // Release: `tail` as it is; pairs with the acquire in `look`, to which the queue could
            // seem empty.
            match self.head.0.compare_exchange(head, next, Release, Relaxed) {
                Ok(_) => return first,
                Err(now) => head = now,
            }
        }
        None
    }

    /// For the owner: lowers the tail by the item at the back, and then loads the head; returns the
    /// head and the position of that item. Returns `None` if there is no item.
    pub(super) fn lower(&self) -> Option<(u64, u64)> {
        let tail = self.tail.0.load(Relaxed);
        if tail == self.head.0.load(Relaxed) {
            return None;
        }
        let last = tail.wrapping_sub(1);
        // Release: a thread that sees this sees the items below; pairs with the acquire in `look`.
        self.tail.0.store(last, Release);
        // ENDS-2; pairs with the fence in `look`.
        P::fence(SeqCst);
        Some((self.head.0.load(Relaxed), last))
    }

    /// For the owner, after [`lower`](Self::lower): takes the item `last` at the back if it is
    /// still there. It is then the only item, and a thief may be about to take it.
    pub(super) fn pop_only(&self, head: u64, last: u64) -> Option<Item> {
        let tail = last.wrapping_add(1);
        // Relaxed: the fence in `lower` releases the items below it.
        self.tail.0.store(tail, Relaxed);
        // Relaxed: afterwards the deque is empty.
        if head == tail || self.head.0.compare_exchange(head, tail, Relaxed, Relaxed).is_err() {
            return None;
        }
        self.slots.array().item(last)
    }

    /// Returns the items that a thief finds.
    pub(super) fn look(&self) -> Result<There<'_, P>, Stolen> {
        // Relaxed: the fence acquires; pairs with the releases of the owner, so that `tail` is not
        // older than `head`.
        let head = self.head.0.load(Relaxed);
        // ENDS-2; pairs with the fence in `lower`.
        P::fence(SeqCst);
        // Acquire: the items below it, and their array; pairs with the releases of the owner.
        let size = ahead(self.tail.0.load(Acquire), head);
        if size <= 0 {
            return Err(Stolen::Empty);
        }
        let (size, array) = (size as u64, self.slots.array());
        // `head` is outdated, or the owner is moving the positions: retry.
        if size > array.capacity() {
            return Err(Stolen::Retry);
        }
        Ok(There { head, size, array })
    }

    /// ENDS-1: takes `count` items, and returns the first.
    pub(super) fn take(&self, there: &There<'_, P>, count: u64) -> Stolen {
        let head = there.head;
        let first = there.array.item(head);
        // Release: we have read the slots; pairs with the acquire in `used`.
        // mutant: only a load that reads what depends on it would tell, of which models have none.
        match self.head.0.compare_exchange(head, head.wrapping_add(count), Release, Relaxed) {
            Ok(_) => first.map_or(Stolen::Retry, Stolen::Got),
            Err(_) => Stolen::Retry,
        }
    }

    /// Takes the item at the front; called by a thief.
    pub(super) fn steal(&self) -> Stolen {
        self.look().map_or_else(|told| told, |there| self.take(&there, 1))
    }
}
