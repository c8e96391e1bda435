//! Several queues as one: which of them to go to, and when none has anything.
//!
//! - SHARDS-1: an item is in one shard, from when it is put in until it is taken out.
//! - SHARDS-2: who finds none looks at all of them, and says that nothing is there if nobody has
//!   begun to put in meanwhile: then there was a moment at which all were empty.

use alloc::boxed::Box;

use super::{Item, Lines, Lot};

/// Shards, one at least.
pub(super) struct Shards<S>(Box<[Lines<S>]>);

/// A queue of many that is one of several.
pub(super) trait Shard {
    /// Takes an item out. Who is told that there is none sees what was put in elsewhere before
    /// that which it has seen to be taken out.
    fn pop(&self) -> Option<Item>;

    /// How often somebody has begun to put in: this only grows.
    fn put(&self) -> u64;
}

impl<S> Shards<S> {
    pub(super) fn new(count: usize, shard: impl Fn() -> S) -> Self {
        assert!(count > 0, "no shards");
        Self((0..count).map(|_| Lines(shard())).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &S> {
        self.0.iter().map(|shard| &shard.0)
    }

    /// Two of them by lot, perhaps the same.
    pub(super) fn two(&self, lot: &mut Lot) -> [&S; 2] {
        [(); 2].map(|()| &self.0[lot.below(self.0.len())].0)
    }

    /// All of them, from one by lot on.
    pub(super) fn from(&self, lot: &mut Lot) -> impl Iterator<Item = &S> {
        let (before, from) = self.0.split_at(lot.below(self.0.len()));
        from.iter().chain(before).map(|shard| &shard.0)
    }
}

impl<S: Shard> Shards<S> {
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
