//! The slots of a deque.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Platform};

use super::Item;

/// A power of two of slots.
pub(super) struct Array<P: Platform> {
    slots: Box<[P::U64]>,
    /// The address of the one before, 0 if that is the first.
    pub(super) older: u64,
}

impl<P: Platform> Array<P> {
    pub(super) fn new(capacity: usize, older: u64) -> Self {
        Self { slots: (0..capacity).map(|_| P::U64::ZERO).collect(), older }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    pub(super) fn slot(&self, position: u64) -> &P::U64 {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// What is in the slot of a position; `None` if nothing was ever.
    pub(super) fn item(&self, position: u64) -> Option<Item> {
        // Relaxed: acquired with `tail`, or the owner's own.
        Item::new(self.slot(position).load(Relaxed))
    }
}
