//! Concurrent queues of items that are one word each, mainly tasks.
//!
//! | queue | puts in | takes out | order |
//! |---|---|---|---|
//! | [`Deque`] | its owner | its owner at both ends, thieves up to half at the front | exact |
//! | [`ChaseLev`] | its owner | its owner at both ends, thieves one at the front | exact |
//! | [`Blocks`] | its owner, at no cost | its owner at both ends, thieves by blocks | exact |
//! | [`Slotted`] | its owner | as for `Deque`; thieves the last when it is old | nearly exact |
//! | [`RelaxedQueue`] | all | all | nearly first in, first out |
//! | [`KFifo`] | all | all | first in, first out, except for `k - 1` items |
//! | [`MultiQueue`] | all | all | about first in, first out, without a bound |
//! | [`RankedQueue`] | all | all | by rank; exact with one shard |
//! | [`Inbox`] | all | its owner | exact, by poster |
//!
//! An item that is put in is taken out once. A queue does not block, except a [`RelaxedQueue`] in
//! which seven threads were stopped at one place, and a [`RankedQueue`], which has locks. A full
//! queue hands the [`Item`] back. `docs/queues.md` lists the cost of an item, and by how many
//! others it is overtaken.

mod blocks;
mod chase_lev;
mod deque;
mod ends;
mod inbox;
mod kfifo;
mod lot;
mod multi;
mod ranked;
mod relaxed;
mod shards;
mod slots;
mod slotted;

pub use blocks::Blocks;
pub use chase_lev::ChaseLev;
pub use deque::Deque;
pub use inbox::{Inbox, Link};
pub use kfifo::KFifo;
pub use lot::Lot;
pub use multi::MultiQueue;
pub use ranked::RankedQueue;
pub use relaxed::RelaxedQueue;
pub use slotted::Slotted;

use core::num::NonZeroU64;

/// An item of a queue: a word that names an object, such as its address.
///
/// A multiple of eight, at least 4096: the queues use the other words themselves. On Linux, the
/// address of any object that is aligned to eight bytes qualifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item(NonZeroU64);

/// The error of a full queue; contains the item that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full(pub Item);

impl Item {
    const ALIGN: u64 = 8;
    const LEAST: u64 = 4096;

    /// Returns the item of this word, if the word can be one.
    #[must_use]
    pub const fn new(word: u64) -> Option<Self> {
        if word < Self::LEAST || !word.is_multiple_of(Self::ALIGN) {
            return None;
        }
        match NonZeroU64::new(word) {
            Some(word) => Some(Self(word)),
            None => None,
        }
    }

    /// Returns the item's word.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0.get()
    }
}

/// The queue of a worker: only the worker puts items in, and thieves take from it. No function
/// blocks.
///
/// # Safety
///
/// For `push`, `keeps_last`, `own_count`, `pop_back`, `pop_front` and `share`, the caller is the
/// owner: one thread at a time, whose operations on the queue happen before those of the next
/// owner.
pub trait WorkQueue {
    /// Puts an item in at the back.
    ///
    /// # Errors
    ///
    /// If there is no room.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn push(&self, item: Item) -> Result<(), Full>;

    /// Returns whether thieves would find no more items than at the last call, so that they need
    /// not be notified.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn keeps_last(&self) -> bool {
        false
    }

    /// Returns an upper bound of the number of items, including those that thieves do not find; may
    /// be stale at once.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn own_count(&self) -> u64 {
        self.count()
    }

    /// Takes the item at the back, the last that was put in.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn pop_back(&self) -> Option<Item>;

    /// Takes the item at the front, the first that was put in.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn pop_front(&self) -> Option<Item>;

    /// Makes the items that were put in so far available to thieves; returns `false` if there is no
    /// room for that.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn share(&self) -> bool;

    /// Takes items at the front: as many as `share` returns for their number, but at most half of
    /// them, rounded up. Returns the first item and puts the others into `mine`, up to its room.
    /// Takes at least one item; exactly one if the queue's thieves take one at a time.
    ///
    /// # Safety
    ///
    /// The caller is the owner of `mine`, which is another queue and is empty. `share` does not use
    /// it.
    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen
    where
        Self: Sized;

    /// Returns whether thieves would find no item; may be stale at once.
    fn is_empty(&self) -> bool;

    /// Returns how many items thieves would find, or how many blocks if they take blocks; may be
    /// stale at once.
    fn count(&self) -> u64;
}

/// No queue, for workers that share one queue.
impl WorkQueue for () {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        Err(Full(item))
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        None
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        None
    }

    unsafe fn share(&self) -> bool {
        true
    }

    unsafe fn steal_into(&self, (): &Self, _: impl FnOnce(u64) -> u64) -> Stolen {
        Stolen::Empty
    }

    fn is_empty(&self) -> bool {
        true
    }

    fn count(&self) -> u64 {
        0
    }
}

/// The result of a theft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Stolen {
    /// The thief got this item, the first; any others are in the thief's queue.
    Got(Item),
    /// The queue had no item.
    Empty,
    /// Another thread was quicker. The queue may have more items.
    Retry,
}

impl Stolen {
    /// Returns the stolen item, if any.
    #[must_use]
    pub fn got(self) -> Option<Item> {
        match self {
            Self::Got(item) => Some(item),
            Self::Empty | Self::Retry => None,
        }
    }
}

/// A value on two separate cache lines, because prefetchers treat two neighbouring lines as one.
#[repr(C, align(128))]
struct Lines<T>(T);
