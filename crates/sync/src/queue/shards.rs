//! Several queues (shards) used as one: how a shard is chosen, when all are empty, and how shards
//! are added.
//!
//! | field | written by | meaning |
//! |---|---|---|
//! | `first` | – | the initial shards |
//! | `later` | producers without room | the address of each later shard, 0 until it is added |
//! | `grown` | producers without room | how many of these are in use |
//!
//! - SHARDS-1: an item is in one shard, from when it is put in until it is taken out.
//! - SHARDS-2: a consumer that finds no item checks all shards, and reports that the queue is empty
//!   if no producer has begun to put in meanwhile: then at some moment all were empty.
//! - SHARDS-3: a shard is complete when it is counted, and stays until the queue is dropped. So a
//!   thread that uses the count finds it.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::{Item, Lines, Lot};

/// The shards of a queue, at least one.
pub(super) struct Shards<P: Platform, S> {
    first: Box<[Lines<S>]>,
    later: Box<[P::U64]>,
    grown: P::U32,
}

/// A queue of many producers and consumers that is one of several.
pub(super) trait Shard {
    /// Takes an item out. A caller that gets `None` sees all items that were put in elsewhere
    /// before an item whose removal it has seen.
    fn pop(&self) -> Option<Item>;

    /// Returns how many times a producer has begun to put in; this only grows.
    fn put(&self) -> u64;
}

impl<P: Platform, S> Shards<P, S> {
    /// Creates `count` shards, which may grow to `most`.
    pub(super) fn new(count: usize, most: usize, shard: impl Fn() -> S) -> Self {
        assert!(count > 0, "no shards");
        assert!(count <= most && most <= 1 << 31, "{count} to {most} shards");
        Self {
            first: (0..count).map(|_| Lines(shard())).collect(),
            later: (count..most).map(|_| P::U64::ZERO).collect(),
            grown: P::U32::ZERO,
        }
    }

    fn count(&self) -> usize {
        // Acquire: SHARDS-3; pairs with the release in `grow`.
        self.first.len() + self.grown.load(Acquire) as usize
    }

    /// Returns a shard that is counted.
    fn get(&self, at: usize) -> &S {
        match self.first.get(at) {
            Some(shard) => &shard.0,
            // Relaxed: SHARDS-3.
            None => self.at(self.later[at - self.first.len()].load(Relaxed)),
        }
    }

    fn at(&self, address: u64) -> &S {
        let shard: *const Lines<S> = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: SHARDS-3: the address is from a word of `later` that `grow` has set, or found
        // set.
        unsafe { &(*shard).0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &S> {
        (0..self.count()).map(|at| self.get(at))
    }

    /// Returns two shards chosen by `lot`, perhaps the same.
    pub(super) fn two(&self, lot: &mut Lot) -> [&S; 2] {
        let count = self.count();
        [(); 2].map(|()| self.get(lot.below(count)))
    }

    /// Returns all shards, starting at one chosen by `lot`.
    pub(super) fn from(&self, lot: &mut Lot) -> impl Iterator<Item = &S> {
        self.first_of(self.count(), lot)
    }

    fn first_of(&self, count: usize, lot: &mut Lot) -> impl Iterator<Item = &S> {
        let from = lot.below(count);
        (from..count).chain(0..from).map(|at| self.get(at))
    }

    /// Returns the present shards; then, for a producer that finds no room in these, all others up
    /// to the maximum, one by one. Other threads may have added some meanwhile; this adds the rest.
    pub(super) fn growing(&self, lot: &mut Lot, shard: impl Fn() -> S) -> impl Iterator<Item = &S> {
        let count = self.count();
        let later = (count..).map_while(move |at| self.grow(at, &shard));
        self.first_of(count, lot).chain(later)
    }

    /// Returns the shard at this place, if the maximum allows one; all before it are counted. The
    /// caller creates it, unless another thread came first.
    #[cold]
    fn grow(&self, at: usize, shard: impl FnOnce() -> S) -> Option<&S> {
        let grown = at - self.first.len();
        let word = self.later.get(grown)?;
        let new = Box::into_raw(Box::new(Lines(shard())));
        let address = new.expose_provenance() as u64;
        // AcqRel: SHARDS-3. Release: a thread that loses the race, and counts this shard, sees its
        // contents. Acquire: if we lose, we see those of the other's shard.
        // mutant: where its words are is plain memory, which models don't see, and all of them are
        // zero.
        let address = match word.compare_exchange(0, address, AcqRel, Acquire) {
            Ok(_) => address,
            Err(theirs) => {
                // SAFETY: created above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                theirs
            }
        };
        // Release: SHARDS-3; pairs with the acquire in `count`. Another thread has counted it, or
        // we do.
        let grown = grown as u32;
        let _: Result<_, _> = self.grown.compare_exchange(grown, grown + 1, Release, Relaxed);
        Some(self.at(address))
    }
}

impl<P: Platform, S: Shard> Shards<P, S> {
    /// Takes an item out of any shard that has one.
    #[cold]
    pub(super) fn sweep(&self, lot: &mut Lot) -> Option<Item> {
        let mut put = self.put();
        loop {
            if let Some(item) = self.from(lot).find_map(Shard::pop) {
                return Some(item);
            }
            // SHARDS-2
            let now = self.put();
            if now == put {
                return None;
            }
            put = now;
        }
    }

    fn put(&self) -> u64 {
        self.iter().map(Shard::put).sum()
    }
}

impl<P: Platform, S> Drop for Shards<P, S> {
    fn drop(&mut self) {
        for word in &self.later {
            let address = word.load(Relaxed);
            if address != 0 {
                let shard: *mut Lines<S> = core::ptr::with_exposed_provenance_mut(address as usize);
                // SAFETY: `grow` made it from a box, and no other thread can access it any more.
                drop(unsafe { Box::from_raw(shard) });
            }
        }
    }
}
