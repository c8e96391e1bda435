//! The multi-queue: several relaxed queues, of which each operation draws two at random and uses
//! the better one.
//!
//! | field | meaning |
//! |---|---|
//! | `shards` | the queues, each with two ends |
//! | `capacity` | the number of items that each has room for |
//!
//! A producer takes the shorter of two that it has drawn, a consumer the longer. So the queues stay
//! about equally long (the power of two choices), and old items are taken soon; but nothing bounds
//! how many items may overtake another. Contention is spread over all queues.
//!
//! The dissertation's sharded queue puts items into one shard that it draws, and searches all
//! shards from there for an item. That two choices are much better than one is shown in Postnikova,
//! Koval, Nadiradze and Alistarh, "Multi-queues can be state-of-the-art priority schedulers" (PPoPP
//! 2022), for queues by priority.

use antiphon_platform::Platform;

use super::shards::{Shard, Shards};
use super::{Full, Item, Lot, RelaxedQueue};

/// A bounded queue of many producers and many consumers, which contend less the more shards it has.
pub struct MultiQueue<P: Platform> {
    shards: Shards<P, RelaxedQueue<P>>,
    capacity: usize,
}

impl<P: Platform> MultiQueue<P> {
    /// An empty queue of this many `shards`, each with room for `capacity` items, rounded up to a
    /// power of two.
    ///
    /// # Panics
    ///
    /// If `shards` is zero, or `capacity` above 2³¹.
    #[must_use]
    pub fn new(shards: usize, capacity: usize) -> Self {
        Self::growing(shards, shards, capacity)
    }

    /// Does what [`new`](Self::new) does, but shards are added one by one, up to `most`, when the
    /// present shards have no room. Added shards are freed with the queue.
    ///
    /// # Panics
    ///
    /// The same as for [`new`](Self::new); and if `most` is below `shards`, or above 2³¹.
    #[must_use]
    pub fn growing(shards: usize, most: usize, capacity: usize) -> Self {
        Self { shards: Shards::new(shards, most, || RelaxedQueue::new(capacity)), capacity }
    }

    /// Puts an item into the shorter of two shards, or else into any shard with room.
    ///
    /// # Errors
    ///
    /// If no shard has room, or other producers are about to take all of it.
    pub fn push(&self, item: Item, lot: &mut Lot) -> Result<(), Full> {
        let [one, other] = self.shards.two(lot);
        let shorter = if other.len() < one.len() { other } else { one };
        shorter.push(item).or_else(|_| {
            let new = || RelaxedQueue::new(self.capacity);
            let mut shards = self.shards.growing(lot, new);
            let pushed = shards.any(|shard| shard.push(item).is_ok());
            if pushed { Ok(()) } else { Err(Full(item)) }
        })
    }

    /// Takes an item out. Returns `None` if at some moment of the call other threads were about to
    /// take every item.
    pub fn pop(&self, lot: &mut Lot) -> Option<Item> {
        let [one, other] = self.shards.two(lot);
        let longer = if other.len() > one.len() { other } else { one };
        longer.pop().or_else(|| self.shards.sweep(lot))
    }

    /// Returns whether the queue seems to be empty; may be stale at once.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(RelaxedQueue::is_empty)
    }
}

impl<P: Platform> Shard for RelaxedQueue<P> {
    fn pop(&self) -> Option<Item> {
        Self::pop(self)
    }

    fn put(&self) -> u64 {
        self.drawn_to_put()
    }
}
