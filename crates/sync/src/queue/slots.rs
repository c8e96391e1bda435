//! The growable array of slots of a deque.
//!
//! - SLOTS-1: a larger array has the contents of the array before it, which is never written to
//!   again, nor freed before the deque is.

use alloc::boxed::Box;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::Item;

/// A deque's arrays, each twice as large as the one before. The newest is in use.
pub(super) struct Slots<P: Platform> {
    /// The address of the newest array; 0 while the first is the newest.
    newest: P::U64,
    first: Array<P>,
    most: u64,
}

/// A power of two of slots. They are aligned to a cache line: otherwise the allocator, and in the
/// simulator the host, would decide what else is on their lines.
pub(super) struct Array<P: Platform> {
    lines: Box<[Line<P>]>,
    capacity: u64,
    /// The address of the array before this one; 0 if that is the first.
    older: u64,
}

const A_LINE: usize = 8;

#[repr(align(64))]
struct Line<P: Platform>([P::U64; A_LINE]);

impl<P: Platform> Slots<P> {
    /// Creates `capacity` slots, which may grow to `most`; both rounded up to powers of two.
    pub(super) fn new(capacity: usize, most: usize) -> Self {
        assert!(capacity <= most && most <= 1 << 31, "{capacity} to {most} items");
        Self {
            newest: P::U64::ZERO,
            first: Array::new(capacity.max(2).next_power_of_two(), 0),
            most: most.max(2).next_power_of_two() as u64,
        }
    }

    pub(super) fn array(&self) -> &Array<P> {
        // Acquire: the array's contents; pairs with the release in `grow`.
        let address = self.newest.load(Acquire);
        if address == 0 {
            return &self.first;
        }
        // SAFETY: `grow` has stored the address, and the array is freed with the deque.
        unsafe { &*core::ptr::with_exposed_provenance(address as usize) }
    }

    /// Returns whether there may be an array with more slots than the newest.
    pub(super) fn may_grow(&self) -> bool {
        self.array().capacity() < self.most
    }

    /// For the owner: adds an array with more slots than the newest, which is full up to `tail`;
    /// returns `None` at the maximum.
    #[cold]
    pub(super) fn grow(&self, tail: u64) -> Option<&Array<P>> {
        let old = self.array();
        let capacity = old.capacity();
        if !self.may_grow() {
            return None;
        }
        let new = Array::<P>::new(2 * capacity as usize, self.newest.load(Relaxed));
        // SLOTS-1. Items that were taken meanwhile are copied as well: no thread looks there.
        for below in 1..=capacity {
            let position = tail.wrapping_sub(below);
            new.slot(position).store(old.slot(position).load(Relaxed), Relaxed);
        }
        let new = Box::into_raw(Box::new(new)).expose_provenance() as u64;
        // Release: the array's contents; pairs with the acquire in `array`.
        self.newest.store(new, Release);
        Some(self.array())
    }
}

impl<P: Platform> Drop for Slots<P> {
    fn drop(&mut self) {
        let mut address = self.newest.load(Relaxed);
        while address != 0 {
            let array: *mut Array<P> = core::ptr::with_exposed_provenance_mut(address as usize);
            // SAFETY: `grow` made it from a box, each is on the list once, and no other thread can
            // access it any more.
            address = unsafe { Box::from_raw(array) }.older;
        }
    }
}

impl<P: Platform> Array<P> {
    fn new(capacity: usize, older: u64) -> Self {
        let line = || Line([const { P::U64::ZERO }; A_LINE]);
        let lines = (0..capacity.div_ceil(A_LINE)).map(|_| line()).collect();
        Self { lines, capacity: capacity as u64, older }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn slot(&self, position: u64) -> &P::U64 {
        let place = (position & (self.capacity - 1)) as usize;
        &self.lines[place / A_LINE].0[place % A_LINE]
    }

    /// Returns the item in the slot of a position; `None` if the slot was never used.
    pub(super) fn item(&self, position: u64) -> Option<Item> {
        // Relaxed: acquired with the deque's tail, or the owner's own.
        Item::new(self.slot(position).load(Relaxed))
    }
}
