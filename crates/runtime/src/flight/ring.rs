//! A ring of records with one writer, which any thread reads without stopping the writer.
//!
//! | field | written by | meaning |
//! |---|---|---|
//! | `head` | the writer | number of records written: the next goes to slot `head % slots` |
//! | `slots` | the writer | the words of the latest records |
//!
//! - FLIGHT-1: a reader gets whole records, in order and without a gap, up to those that were
//!   written when it began or later.
//! - FLIGHT-2: no thread waits: the writer does not know of readers, and a reader drops records
//!   that were overwritten meanwhile.
//!
//! FLIGHT-1 is a sequence lock without the loop. A reader that has seen a word of record `n` sees
//! afterwards that `n` were written, and drops all up to `n - slots`, whose slot record `n` has.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

/// A ring of records of `W` words. When it is full, all but the oldest can be read, whether or not
/// the writer is active: the next record may be in progress in that slot.
pub struct Ring<P: Platform, const W: usize> {
    head: P::U64,
    slots: Box<[[P::U64; W]]>,
}

impl<P: Platform, const W: usize> Ring<P, W> {
    /// Creates a ring of `records` records, at least 2.
    #[must_use]
    pub fn new(records: usize) -> Self {
        let slot = |_| [const { P::U64::ZERO }; W];
        Self { head: P::U64::ZERO, slots: (0..records.max(2)).map(slot).collect() }
    }

    /// Writes a record over the oldest. One thread at a time: if two write at once, neither record
    /// is whole.
    pub fn write(&self, record: [u64; W]) {
        // Relaxed: only the writer changes it.
        let head = self.head.load(Relaxed);
        // Release: the head, as the last record left it, before the words below; pairs with the
        // acquire fence in `read`.
        P::fence(Release);
        for (word, value) in self.slot(head).iter().zip(record) {
            // Relaxed: published with the head.
            word.store(value, Relaxed);
        }
        // Release: the record; pairs with the acquire in `read`.
        self.head.store(head.wrapping_add(1), Release);
    }

    /// Returns the latest records, the oldest first. Does not block.
    #[must_use]
    pub fn read(&self) -> Vec<[u64; W]> {
        let slots = self.slots.len() as u64;
        // Acquire: FLIGHT-1, records up to here; pairs with the release in `write`.
        let end = self.head.load(Acquire);
        let begin = end.saturating_sub(slots);
        // Relaxed: words of later records are detected below.
        let words = |number| self.slot(number).each_ref().map(|word| word.load(Relaxed));
        let mut records: Vec<_> = (begin..end).map(words).collect();
        // Acquire: the head, after all that was seen of later records; pairs with the release fence
        // in `write`.
        P::fence(Acquire);
        // The next record may be in progress, in the slot of the first of these.
        let sound = (self.head.load(Relaxed) + 1).saturating_sub(slots).max(begin);
        records.drain(..(sound - begin).min(end - begin) as usize);
        records
    }

    /// Returns the latest record; `None` if there is none, or if it was overwritten meanwhile and
    /// is not whole. Does not block.
    #[must_use]
    pub fn latest(&self) -> Option<[u64; W]> {
        // Acquire: FLIGHT-1, the record; pairs with the release in `write`.
        let number = self.head.load(Acquire).checked_sub(1)?;
        // Relaxed: words of later records are detected below.
        let words = self.slot(number).each_ref().map(|word| word.load(Relaxed));
        // Acquire: as in `read`.
        P::fence(Acquire);
        // All other slots of the ring are written before this one.
        (self.head.load(Relaxed) - number < self.slots.len() as u64).then_some(words)
    }

    fn slot(&self, number: u64) -> &[P::U64; W] {
        &self.slots[(number % self.slots.len() as u64) as usize]
    }
}
