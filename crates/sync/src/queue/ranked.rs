//! A queue by rank: several heaps, each behind a lock, of which a consumer draws two at random and
//! takes the better first item.
//!
//! | lines of a shard | field | written by | meaning |
//! |---|---|---|---|
//! | 0–1 | `lock` | all | its owner may use the other fields |
//! | | `first` | the lock's owner | 0, or one more than the rank of the first item |
//! | | `count`, `turns` | the lock's owner | number of items; number of items ever put in |
//! | | `heap` | the lock's owner | a rank, a turn and an item for each, 4 words apart |
//!
//! The item with the lowest rank is first, and of equals the first that was put in. With one shard
//! the order is exact. With several, threads seldom contend, and a consumer takes the first item of
//! the better of two shards: near the first, but without a bound.
//!
//! - RANKED-1: `first` is not 0 while an item is there that no thread is about to take. It is read
//!   without the lock, to choose a shard and to avoid locking an empty one.
//! - RANKED-2: no entry is before its parent in the heap, by rank and then by turn.
//!
//! Taking the better of two among several priority queues is from Rihani, Sanders and Dementiev,
//! "MultiQueues: simple relaxed concurrent priority queues" (SPAA 2015); Postnikova and others
//! (PPoPP 2022, see the multi-queue) schedule tasks by them.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::shards::{self, Shards};
use super::{Full, Item, Lot};
use crate::lock::ShflMutex;

/// A bounded queue of many producers and many consumers, by rank. A thread that finds a shard
/// locked waits for about one pass from the root of a heap to a leaf.
pub struct RankedQueue<P: Platform> {
    shards: Shards<P, Shard<P>>,
}

struct Shard<P: Platform> {
    lock: ShflMutex<P>,
    first: P::U64,
    count: P::U64,
    turns: P::U64,
    heap: Box<[Entry<P>]>,
}

#[repr(C, align(32))]
struct Entry<P: Platform> {
    rank: P::U64,
    turn: P::U64,
    item: P::U64,
}

impl<P: Platform> RankedQueue<P> {
    /// An empty queue of this many `shards`, each with room for `capacity` items. With one shard
    /// the order is exact.
    ///
    /// # Panics
    ///
    /// If `shards` is zero, or `capacity` is, or above 2³¹.
    #[must_use]
    pub fn new(shards: usize, capacity: usize) -> Self {
        assert!(capacity > 0 && capacity <= 1 << 31, "{capacity} items");
        Self { shards: Shards::new(shards, shards, || Shard::new(capacity)) }
    }

    /// Puts an item in.
    ///
    /// # Errors
    ///
    /// If there is no room in any shard.
    pub fn push(&self, item: Item, rank: u64, lot: &mut Lot) -> Result<(), Full> {
        let pushed = self.shards.from(lot).any(|shard| shard.push(item, rank));
        if pushed { Ok(()) } else { Err(Full(item)) }
    }

    /// Takes an item out. Returns `None` if at some moment of the call the queue was empty.
    pub fn pop(&self, lot: &mut Lot) -> Option<Item> {
        let [one, other] = self.shards.two(lot);
        let better = if other.before(one) { other } else { one };
        shards::Shard::pop(better).or_else(|| self.shards.sweep(lot))
    }

    /// Returns whether the queue seems to be empty; may be stale at once.
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(Shard::is_empty)
    }
}

impl<P: Platform> Shard<P> {
    fn new(capacity: usize) -> Self {
        let zero = || P::U64::ZERO;
        let entry = |_| Entry { rank: zero(), turn: zero(), item: zero() };
        let heap = (0..capacity).map(entry).collect();
        Self { lock: ShflMutex::NEW, first: zero(), count: zero(), turns: zero(), heap }
    }

    fn is_empty(&self) -> bool {
        // Acquire: SHARDS-2, a thread that sees that an item was taken sees what was put in before;
        // pairs with the release in `locked`.
        self.first.load(Acquire) == 0
    }

    /// Returns whether this shard's first item is before the first item of `other`.
    fn before(&self, other: &Self) -> bool {
        // An empty shard counts as last. Relaxed: a guess.
        let [mine, theirs] = [self, other].map(|of| of.first.load(Relaxed).wrapping_sub(1));
        mine < theirs
    }

    fn push(&self, item: Item, rank: u64) -> bool {
        self.locked(|count| {
            if count == self.heap.len() {
                return (false, count);
            }
            let turn = self.turns.load(Relaxed);
            self.turns.store(turn.wrapping_add(1), Relaxed);
            self.raise(count, (rank, turn, item.word()));
            (true, count + 1)
        })
    }

    /// Runs `with` on the heap, given its number of entries; `with` also returns the new number.
    fn locked<R>(&self, with: impl FnOnce(usize) -> (R, usize)) -> R {
        self.lock.lock();
        // Relaxed, here and in the heap: the lock orders them.
        let (answer, count) = with(self.count.load(Relaxed) as usize);
        self.count.store(count as u64, Relaxed);
        let first = if count == 0 { 0 } else { self.get(0).0.saturating_add(1) };
        // RANKED-1. Release: SHARDS-2, turns; pairs with the acquire in `is_empty`.
        self.first.store(first, Release);
        // SAFETY: locked above.
        unsafe { self.lock.unlock() };
        answer
    }

    /// Inserts an entry at `place`, the first free place, or above it.
    fn raise(&self, mut place: usize, entry: (u64, u64, u64)) {
        while place > 0 && entry < self.get((place - 1) / 2) {
            self.set(place, self.get((place - 1) / 2));
            place = (place - 1) / 2;
        }
        self.set(place, entry);
    }

    /// Inserts an entry at the top, which is free, or below it, in a heap of `count` entries.
    fn lower(&self, count: usize, entry: (u64, u64, u64)) {
        let mut place = 0;
        loop {
            let children = (2 * place + 1..2 * place + 3).filter(|&child| child < count);
            match children.min_by_key(|&child| self.get(child)) {
                Some(child) if self.get(child) < entry => {
                    self.set(place, self.get(child));
                    place = child;
                }
                _ => return self.set(place, entry),
            }
        }
    }

    fn get(&self, place: usize) -> (u64, u64, u64) {
        let Entry { rank, turn, item } = &self.heap[place];
        (rank.load(Relaxed), turn.load(Relaxed), item.load(Relaxed))
    }

    fn set(&self, place: usize, (rank, turn, item): (u64, u64, u64)) {
        let entry = &self.heap[place];
        entry.rank.store(rank, Relaxed);
        entry.turn.store(turn, Relaxed);
        entry.item.store(item, Relaxed);
    }
}

impl<P: Platform> shards::Shard for Shard<P> {
    fn pop(&self) -> Option<Item> {
        if self.is_empty() {
            return None;
        }
        self.locked(|count| {
            let Some(count) = count.checked_sub(1) else { return (None, 0) };
            let item = Item::new(self.get(0).2);
            self.lower(count, self.get(count));
            (item, count)
        })
    }

    fn put(&self) -> u64 {
        // Relaxed: a thread that has seen `first` has also seen this value.
        self.turns.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use antiphon_linux::Linux;

    use super::*;

    fn item(number: u64) -> Item {
        Item::new(8 * (512 + number)).expect("a word for an item")
    }

    fn drained(queue: &RankedQueue<Linux>, lot: &mut Lot) -> Vec<u64> {
        core::iter::from_fn(|| queue.pop(lot)).map(|item| item.word() / 8 - 512).collect()
    }

    #[test]
    fn one_shard_is_in_order_and_equals_are_as_they_came() {
        let (queue, mut lot) = (RankedQueue::<Linux>::new(1, 64), Lot::new(1));
        let mut expected: Vec<(u64, u64)> = (0..64).map(|n| (n * 37 % 5, n)).collect();
        for &(rank, number) in &expected {
            queue.push(item(number), rank, &mut lot).expect("room");
        }
        assert_eq!(queue.push(item(64), 0, &mut lot), Err(Full(item(64))));
        expected.sort_unstable();
        let numbers: Vec<u64> = expected.into_iter().map(|(_, number)| number).collect();
        assert_eq!(drained(&queue, &mut lot), numbers);
        assert!(queue.is_empty());
    }

    #[test]
    fn several_shards_lose_nothing_and_the_last_rank_is_one() {
        let (queue, mut lot) = (RankedQueue::<Linux>::new(3, 8), Lot::new(1));
        for number in 0..24 {
            queue.push(item(number), u64::MAX - number % 2, &mut lot).expect("room");
        }
        let mut numbers = drained(&queue, &mut lot);
        numbers.sort_unstable();
        assert_eq!(numbers, (0..24).collect::<Vec<_>>());
    }
}
