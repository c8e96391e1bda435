//! The multi-queue: several relaxed queues, of which everybody draws two and takes the better one.
//!
//! | field | meaning |
//! |---|---|
//! | `shards` | the queues, each with its own two ends |
//!
//! Who puts in takes the shorter of two that it has drawn, who takes out the longer. So they stay
//! about as long as each other (the power of two choices), and what is old is taken soon; but
//! nothing bounds how many may overtake an item. Contention is shared out over all of them.
//!
//! - MULTI-1: an item is in one shard, from when it is put in until it is taken out.
//! - MULTI-2: who finds none there looks at all of them, and says that nothing is there if nobody
//!   has drawn a position to put in meanwhile: then there was a moment at which all were empty.
//!
//! The dissertation's sharded queue puts in at one that it draws, and looks for an item at all from
//! there on. That two choices are much better than one is in Postnikova, Koval, Nadiradze and
//! Alistarh, "Multi-queues can be state-of-the-art priority schedulers" (PPoPP 2022), for queues by
//! priority.

use alloc::boxed::Box;

use antiphon_platform::Platform;

use super::{Full, Item, Lot, RelaxedQueue};

/// A bounded queue of many producers and many consumers, who meet less the more shards it has.
pub struct MultiQueue<P: Platform> {
    shards: Box<[RelaxedQueue<P>]>,
}

impl<P: Platform> MultiQueue<P> {
    /// An empty one of so many shards, each with room for `capacity` items, rounded up to a power
    /// of two.
    ///
    /// # Panics
    ///
    /// If `shards` is zero, or `capacity` above 2³¹.
    #[must_use]
    pub fn new(shards: usize, capacity: usize) -> Self {
        assert!(shards > 0, "no shards");
        Self { shards: (0..shards).map(|_| RelaxedQueue::new(capacity)).collect() }
    }

    /// Puts an item in.
    ///
    /// # Errors
    ///
    /// If there is no room in any shard, or others on the way have taken what there is.
    pub fn push(&self, item: Item, lot: &mut Lot) -> Result<(), Full> {
        let [one, other] = self.two(lot);
        let shorter = if other.len() < one.len() { other } else { one };
        shorter.push(item).or_else(|_| {
            let pushed = self.from(lot).any(|shard| shard.push(item).is_ok());
            if pushed { Ok(()) } else { Err(Full(item)) }
        })
    }

    /// Takes an item out. `None`: there was a moment at which there was none that nobody else was
    /// about to take.
    pub fn pop(&self, lot: &mut Lot) -> Option<Item> {
        let [one, other] = self.two(lot);
        let longer = if other.len() > one.len() { other } else { one };
        longer.pop().or_else(|| self.sweep(lot))
    }

    /// Whether there seems to be none; may be stale at once.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(RelaxedQueue::is_empty)
    }

    /// Takes an item out of whatever shard has one.
    #[cold]
    fn sweep(&self, lot: &mut Lot) -> Option<Item> {
        let mut put = self.put();
        loop {
            if let Some(item) = self.from(lot).find_map(RelaxedQueue::pop) {
                return Some(item);
            }
            // MULTI-2
            let now = self.put();
            if now == put {
                return None;
            }
            put = now;
        }
    }

    /// How many positions were drawn to put in: this only grows.
    fn put(&self) -> u64 {
        self.shards.iter().map(RelaxedQueue::put).sum()
    }

    fn two(&self, lot: &mut Lot) -> [&RelaxedQueue<P>; 2] {
        [(); 2].map(|()| &self.shards[lot.below(self.shards.len())])
    }

    /// All shards, from one by lot on.
    fn from(&self, lot: &mut Lot) -> impl Iterator<Item = &RelaxedQueue<P>> {
        let (before, from) = self.shards.split_at(lot.below(self.shards.len()));
        from.iter().chain(before)
    }
}
