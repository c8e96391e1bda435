//! Queues of things that a word names: mainly of tasks.
//!
//! | queue | puts in | takes out | order |
//! |---|---|---|---|
//! | [`Deque`] | its owner | its owner at both ends, thieves up to half at the front | exact |
//! | [`ChaseLev`] | its owner | its owner at both ends, thieves one at the front | exact |
//! | [`Blocks`] | its owner, at no cost | its owner at both ends, thieves by blocks | exact |
//! | [`Slotted`] | its owner | as of a `Deque`; thieves the last when it is old | nearly exact |
//! | [`RelaxedQueue`] | all | all | nearly first in, first out |
//! | [`KFifo`] | all | all | first in, first out, but for `k - 1` |
//! | [`MultiQueue`] | all | all | first in, first out, but for some that nothing bounds |
//! | [`RankedQueue`] | all | all | by rank; of one shard exact |
//! | [`Inbox`] | all | its owner | exact, by poster |
//!
//! An item that is put in is taken out once. A queue does not block, except a [`RelaxedQueue`] in
//! which seven threads were stopped at one place, and a [`RankedQueue`], which has locks: a full
//! queue says so and hands the [`Item`] back, an empty one says so. The cost of an item, and by how
//! many others it is overtaken: `docs/queues.md`.

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

/// An item of a queue: a word that names something, such as an address.
///
/// A multiple of eight that is not among the first 4096: the queues use the words that are left.
/// Each address of an object that is aligned to eight bytes is such a word on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Item(NonZeroU64);

/// The queue is full: returns the item that was to be put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full(pub Item);

impl Item {
    const ALIGN: u64 = 8;
    const LEAST: u64 = 4096;

    /// The item of that word, if the word may be one.
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

    /// The word.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0.get()
    }
}

/// The queue of a worker: only the worker puts in, and thieves take from it. Nothing here blocks.
///
/// # Safety
///
/// Of `push`, `keeps_last`, `own_count`, `pop_back`, `pop_front` and `share`: the caller is the
/// owner. That is one thread at a time, and what it has done to the queue happens before what the
/// next owner does.
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

    /// Whether thieves would find no more items than at the last call: then there is nothing to
    /// notify them of.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn keeps_last(&self) -> bool {
        false
    }

    /// How many items there are at most, including those that thieves don't find; may be stale at
    /// once.
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

    /// Lets thieves have the items that were put in so far; `false` if there is no room for that.
    ///
    /// # Safety
    ///
    /// The caller is the owner.
    unsafe fn share(&self) -> bool;

    /// Takes as many items at the front as `share` says, given how many there are; at most half of
    /// them, rounded up. Returns the first item and puts the others into `mine`, as many as there
    /// is room for. Takes one at least; and one at most, if the queue's thieves take one at a time.
    ///
    /// # Safety
    ///
    /// The caller is the owner of `mine`, which is another queue and has nothing. `share` does
    /// nothing to it.
    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen
    where
        Self: Sized;

    /// Whether thieves seem to find nothing; may be stale at once.
    fn is_empty(&self) -> bool;

    /// How many items thieves seem to find, or blocks of them where they take those; may be stale
    /// at once.
    fn count(&self) -> u64;
}

/// No queue, for a worker that shares one with all.
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
    /// The first item; others are in the thief's queue.
    Got(Item),
    /// There is no item.
    Empty,
    /// Another thread was quicker. There may be more.
    Retry,
}

impl Stolen {
    /// The first item, if there is one.
    #[must_use]
    pub fn got(self) -> Option<Item> {
        match self {
            Self::Got(item) => Some(item),
            Self::Empty | Self::Retry => None,
        }
    }
}

/// A value on two cache lines of its own: prefetchers take neighbours for one.
#[repr(C, align(128))]
struct Lines<T>(T);
