//! The deque of blocks: its owner puts items in and takes them out by plain accesses, and shares
//! whole blocks of items with thieves.
//!
//! ```text
//!   the owner's                shared, a `Deque` of blocks             the owner's
//!   ┌───────┐       ┌───────┬───────┬───────┐       ┌───────┐
//!   │ first │ ◄──── │ block │ block │ block │ ◄───► │ last  │ ◄── push, pop_back
//!   └───────┘       └───────┴───────┴───────┘       └───────┘
//!    pop_front          thieves take blocks
//! ```
//!
//! | lines | field | written by |
//! |---|---|---|
//! | 0–5 | `shared`: the addresses of blocks, in order | the owner, thieves |
//! | 6–7 | `first`, `last`: addresses of blocks; `spare`: a list of blocks | the owner |
//!
//! - BLOCKS-1: a block is in one place: with an owner, as `first`, `last` or spare, or on a
//!   `shared`. The thread that takes it from there has exclusive access to it and its items.
//! - BLOCKS-2: blocks are shared in the order in which they were filled, and the items in a block
//!   are in order; so both ends yield the items in the order of a deque of items.
//! - BLOCKS-3: no thief gets items in `first` and `last` until the owner [shares] them.
//!
//! An item costs its owner a few accesses to two private lines; one in `SIZE` costs an operation on
//! the deque. A thief moves an address, not items. The price is BLOCKS-3: an owner that is about to
//! run for long must [share] its items.
//!
//! The idea that owner and thieves should meet only between blocks is from Wang and others, "BWoS:
//! formally verified block-based work stealing for parallel processing" (OSDI 2023). There blocks
//! stay in their ring, and thieves take items one by one; here blocks change hands.
//!
//! [share]: WorkQueue::share
//! [shares]: WorkQueue::share

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::{Deque, Full, Item, Lines, Stolen, WorkQueue};

/// A deque of one owner and any number of thieves, which take `SIZE` items at a time.
pub struct Blocks<P: Platform, const SIZE: usize = 16> {
    shared: Deque<P>,
    own: Lines<Own<P>>,
    blocks: PhantomData<Box<Block<P, SIZE>>>,
}

/// Addresses of blocks; 0 for no block.
struct Own<P: Platform> {
    first: P::U64,
    last: P::U64,
    spare: P::U64,
    spares: P::U64,
    /// Not 0 if a block was shared after the last call of `keeps_last`.
    told: P::U64,
}

#[repr(C, align(64))]
struct Block<P: Platform, const SIZE: usize> {
    /// The positions at which its items begin and end.
    begin: P::U64,
    end: P::U64,
    /// The next spare block.
    next: P::U64,
    items: [P::U64; SIZE],
}

/// How many spare blocks an owner keeps.
const SPARES: u64 = 8;

impl<P: Platform, const SIZE: usize> Blocks<P, SIZE> {
    /// An empty deque that shares at most `capacity` blocks, rounded up to a power of two.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        const { assert!(SIZE > 0, "blocks with room") };
        let zero = || P::U64::ZERO;
        Self {
            shared: Deque::new(capacity.min(16), capacity),
            own: Lines(Own {
                first: zero(),
                last: zero(),
                spare: zero(),
                spares: zero(),
                told: zero(),
            }),
            blocks: PhantomData,
        }
    }

    /// Puts a block into one of the owner's places; the block that was there has no items.
    fn put(&self, place: &P::U64, block: u64) {
        self.spare(place.load(Relaxed));
        place.store(block, Relaxed);
    }

    /// Makes an empty block the last.
    fn begin(&self) -> &Block<P, SIZE> {
        let Own { last, spare, spares, .. } = &self.own.0;
        let mut address = spare.load(Relaxed);
        if let Some(block) = self.block(spare) {
            spare.store(block.next.load(Relaxed), Relaxed);
            spares.store(spares.load(Relaxed) - 1, Relaxed);
        } else {
            address = Box::into_raw(Box::new(Block::<P, SIZE>::new())).expose_provenance() as u64;
        }
        self.put(last, address);
        // SAFETY: the block was just put there.
        unsafe { &*with_exposed_provenance(address as usize) }
    }

    /// Keeps a block that has no items, or frees it.
    fn spare(&self, address: u64) {
        let Own { spare, spares, .. } = &self.own.0;
        if address == 0 {
            return;
        }
        if spares.load(Relaxed) == SPARES {
            Self::free(address);
            return;
        }
        // SAFETY: BLOCKS-1: the caller has the block.
        let block: &Block<P, SIZE> = unsafe { &*with_exposed_provenance(address as usize) };
        block.next.store(spare.load(Relaxed), Relaxed);
        spare.store(address, Relaxed);
        spares.store(spares.load(Relaxed) + 1, Relaxed);
    }

    /// Returns the block in this place of the owner.
    fn block(&self, place: &P::U64) -> Option<&Block<P, SIZE>> {
        let address = place.load(Relaxed) as usize;
        // SAFETY: BLOCKS-1: the block came from a box and is ours. It is freed when it is spare, or
        // with the deque; until then only shared references exist.
        (address != 0).then(|| unsafe { &*with_exposed_provenance(address) })
    }

    fn free(address: u64) {
        let block: *mut Block<P, SIZE> = with_exposed_provenance_mut(address as usize);
        // SAFETY: BLOCKS-1: the block came from a box, and the caller has it.
        drop(unsafe { Box::from_raw(block) });
    }
}

impl<P: Platform, const SIZE: usize> WorkQueue for Blocks<P, SIZE> {
    unsafe fn push(&self, item: Item) -> Result<(), Full> {
        let mut last = self.block(&self.own.0.last);
        if last.is_none_or(|last| last.is_full()) {
            // SAFETY: the caller's promise.
            if !unsafe { self.share() } {
                return Err(Full(item));
            }
            last = Some(self.begin());
        }
        if let Some(last) = last {
            last.push(item);
        }
        Ok(())
    }

    unsafe fn keeps_last(&self) -> bool {
        let told = &self.own.0.told;
        let keeps = told.load(Relaxed) == 0;
        told.store(0, Relaxed);
        keeps
    }

    unsafe fn own_count(&self) -> u64 {
        let kept = [&self.own.0.first, &self.own.0.last].map(|place| self.block(place));
        let kept: u64 = kept.into_iter().flatten().map(Block::count).sum();
        // An upper bound: blocks that were shared early are not full.
        kept + self.shared.count() * SIZE as u64
    }

    unsafe fn pop_back(&self) -> Option<Item> {
        let Own { first, last, .. } = &self.own.0;
        if let Some(item) = self.block(last).and_then(Block::pop_back) {
            return Some(item);
        }
        // SAFETY: the caller's promise.
        if let Some(block) = unsafe { self.shared.pop_back() } {
            self.put(last, block.word());
        }
        let of = |place| self.block(place).and_then(Block::pop_back);
        of(last).or_else(|| of(first))
    }

    unsafe fn pop_front(&self) -> Option<Item> {
        let Own { first, last, .. } = &self.own.0;
        if let Some(item) = self.block(first).and_then(Block::pop_front) {
            return Some(item);
        }
        // SAFETY: the caller's promise.
        if let Some(block) = unsafe { self.shared.pop_front() } {
            self.put(first, block.word());
        }
        let of = |place| self.block(place).and_then(Block::pop_front);
        of(first).or_else(|| of(last))
    }

    unsafe fn share(&self) -> bool {
        let last = &self.own.0.last;
        if self.block(last).is_none_or(Block::is_empty) {
            return true;
        }
        let Some(block) = Item::new(last.load(Relaxed)) else { return true };
        // SAFETY: the caller's promise. BLOCKS-1: the block is ours alone, and the deque publishes
        // it.
        let shared = unsafe { self.shared.push(block) }.is_ok();
        if shared {
            last.store(0, Relaxed);
            self.own.0.told.store(1, Relaxed);
        }
        shared
    }

    unsafe fn steal_into(&self, mine: &Self, share: impl FnOnce(u64) -> u64) -> Stolen {
        // SAFETY: the caller's promise.
        let stolen = unsafe { self.shared.steal_into(&mine.shared, share) };
        let Stolen::Got(block) = stolen else { return stolen };
        let first = &mine.own.0.first;
        mine.put(first, block.word());
        mine.block(first).and_then(Block::pop_front).map_or(Stolen::Retry, Stolen::Got)
    }

    fn is_empty(&self) -> bool {
        self.shared.is_empty()
    }

    fn count(&self) -> u64 {
        self.shared.count()
    }
}

impl<P: Platform, const SIZE: usize> Drop for Blocks<P, SIZE> {
    /// Frees the blocks, with any items in them.
    fn drop(&mut self) {
        // SAFETY: no other thread is left.
        while let Some(block) = unsafe { self.shared.pop_back() } {
            Self::free(block.word());
        }
        while let Some(block) = self.block(&self.own.0.spare) {
            let next = block.next.load(Relaxed);
            Self::free(self.own.0.spare.load(Relaxed));
            self.own.0.spare.store(next, Relaxed);
        }
        for place in [&self.own.0.first, &self.own.0.last] {
            let address = place.load(Relaxed);
            if address != 0 {
                Self::free(address);
            }
        }
    }
}

impl<P: Platform, const SIZE: usize> Block<P, SIZE> {
    fn new() -> Self {
        Self {
            begin: P::U64::ZERO,
            end: P::U64::ZERO,
            next: P::U64::ZERO,
            items: [const { P::U64::ZERO }; SIZE],
        }
    }

    // Relaxed, in all functions below: a thread that has the block has exclusive access.

    fn is_full(&self) -> bool {
        self.end.load(Relaxed) == SIZE as u64
    }

    fn count(&self) -> u64 {
        self.end.load(Relaxed) - self.begin.load(Relaxed)
    }

    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    fn push(&self, item: Item) {
        let end = self.end.load(Relaxed);
        self.items[end as usize].store(item.word(), Relaxed);
        self.end.store(end + 1, Relaxed);
    }

    fn pop_back(&self) -> Option<Item> {
        let end = self.end.load(Relaxed);
        let begin = self.begin.load(Relaxed);
        self.pop(begin, end, end.wrapping_sub(1), begin, end.wrapping_sub(1))
    }

    fn pop_front(&self) -> Option<Item> {
        let (begin, end) = (self.begin.load(Relaxed), self.end.load(Relaxed));
        self.pop(begin, end, begin, begin + 1, end)
    }

    /// Takes the item `at` out of the items from `begin` to `end`; the rest is then from `first` to
    /// `behind`. An empty block starts again at 0.
    fn pop(&self, begin: u64, end: u64, at: u64, first: u64, behind: u64) -> Option<Item> {
        if begin == end {
            return None;
        }
        let item = Item::new(self.items[at as usize].load(Relaxed));
        let (first, behind) = if first == behind { (0, 0) } else { (first, behind) };
        self.begin.store(first, Relaxed);
        self.end.store(behind, Relaxed);
        item
    }
}
