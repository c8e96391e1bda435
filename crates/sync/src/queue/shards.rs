//! Several queues as one: which of them to go to, when none has anything, and how they become more.
//!
//! | field | written by | meaning |
//! |---|---|---|
//! | `first` | – | the shards that are there from the beginning |
//! | `later` | who finds no room | the address of each that has come since, 0 while it has not |
//! | `grown` | who finds no room | how many of these everybody goes to |
//!
//! - SHARDS-1: an item is in one shard, from when it is put in until it is taken out.
//! - SHARDS-2: who finds none looks at all of them, and says that nothing is there if nobody has
//!   begun to put in meanwhile: then there was a moment at which all were empty.
//! - SHARDS-3: a shard is whole when it is counted, and stays until the queue goes. So who goes by
//!   the count finds it.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::{Item, Lines, Lot};

/// Shards, one at least.
pub(super) struct Shards<P: Platform, S> {
    first: Box<[Lines<S>]>,
    later: Box<[P::U64]>,
    grown: P::U32,
}

/// A queue of many that is one of several.
pub(super) trait Shard {
    /// Takes an item out. Who is told that there is none sees what was put in elsewhere before
    /// that which it has seen to be taken out.
    fn pop(&self) -> Option<Item>;

    /// How often somebody has begun to put in: this only grows.
    fn put(&self) -> u64;
}

impl<P: Platform, S> Shards<P, S> {
    /// So many, that may become `most`.
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

    /// One that is counted.
    fn get(&self, at: usize) -> &S {
        match self.first.get(at) {
            Some(shard) => &shard.0,
            // Relaxed: SHARDS-3.
            None => self.at(self.later[at - self.first.len()].load(Relaxed)),
        }
    }

    fn at(&self, address: u64) -> &S {
        let shard: *const Lines<S> = core::ptr::with_exposed_provenance(address as usize);
        // SAFETY: SHARDS-3: of a word of `later`, which `grow` has seen or made not zero.
        unsafe { &(*shard).0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &S> {
        (0..self.count()).map(|at| self.get(at))
    }

    /// Two of them by lot, perhaps the same.
    pub(super) fn two(&self, lot: &mut Lot) -> [&S; 2] {
        let count = self.count();
        [(); 2].map(|()| self.get(lot.below(count)))
    }

    /// All of them, from one by lot on.
    pub(super) fn from(&self, lot: &mut Lot) -> impl Iterator<Item = &S> {
        self.first_of(self.count(), lot)
    }

    fn first_of(&self, count: usize, lot: &mut Lot) -> impl Iterator<Item = &S> {
        let from = lot.below(count);
        (from..count).chain(0..from).map(|at| self.get(at))
    }

    /// The same, and then, for who finds no room in those, one by one all that may be: others may
    /// have come meanwhile, and it makes what has not.
    pub(super) fn growing(&self, lot: &mut Lot, shard: impl Fn() -> S) -> impl Iterator<Item = &S> {
        let count = self.count();
        let later = (count..).map_while(move |at| self.grow(at, &shard));
        self.first_of(count, lot).chain(later)
    }

    /// That one, all before which are counted, if there may be one: the caller's, or that of
    /// another who came first.
    #[cold]
    fn grow(&self, at: usize, shard: impl FnOnce() -> S) -> Option<&S> {
        let grown = at - self.first.len();
        let word = self.later.get(grown)?;
        let new = Box::into_raw(Box::new(Lines(shard())));
        let address = new.expose_provenance() as u64;
        // AcqRel: SHARDS-3, what is in it, for who has lost and counts it; and in another's.
        let address = match word.compare_exchange(0, address, AcqRel, Acquire) {
            Ok(_) => address,
            Err(theirs) => {
                // SAFETY: made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                theirs
            }
        };
        // Release: SHARDS-3; pairs with the acquire in `count`. Another has counted it, or we do.
        let grown = grown as u32;
        let _: Result<_, _> = self.grown.compare_exchange(grown, grown + 1, Release, Relaxed);
        Some(self.at(address))
    }
}

impl<P: Platform, S: Shard> Shards<P, S> {
    /// Takes an item out of whichever shard has one.
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
                // SAFETY: `grow` made it of a box, and nobody else is left who could look at it.
                drop(unsafe { Box::from_raw(shard) });
            }
        }
    }
}
