//! Slabs: address space for many stacks, which are made one after the other.

use core::ffi::c_void;
use core::num::NonZeroUsize;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use super::NoStack;
use super::shape::Shape;
use crate::pages;

/// The kind of guards in a slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guards {
    /// The whole slab is open; a guard is a marker in the page table.
    Marked,
    /// Stacks are opened one by one, and guards stay shut: each stack is two mappings.
    Shut,
}

/// Adjacent stacks. Unmapped when it is dropped.
pub(super) struct Slab {
    shape: Shape,
    lowest: *mut c_void,
    stacks: usize,
    guards: Guards,
    /// Number of stacks made so far, from the lowest address up. Written by the holder of the
    /// source's lock.
    made: AtomicUsize,
    pub(super) next: OnceLock<Arc<Slab>>,
}

// SAFETY: the pointer is only the slab's address, and never dereferenced.
unsafe impl Send for Slab {}
// SAFETY: as for `Send`: the pointer is never dereferenced; the other fields are `Sync`.
unsafe impl Sync for Slab {}

impl Slab {
    /// Reserves address space for as many stacks as there are already, or fewer where address space
    /// is limited. Returns `None` if there is not enough for a single stack.
    pub(super) fn reserve(shape: Shape, made: usize, wanted: Guards) -> Option<Self> {
        let sizes = core::iter::successors(Some(shape.next_slab(made)), |&stacks| {
            (stacks > 1).then_some(stacks / 2)
        });
        let (lowest, stacks) = sizes.into_iter().find_map(|stacks| {
            Some((pages::reserve(stacks.checked_mul(shape.stride())?)?, stacks))
        })?;
        let made = AtomicUsize::new(0);
        let guards = Guards::Shut;
        let mut slab = Self { shape, lowest, stacks, guards, made, next: OnceLock::new() };
        pages::keep_small(lowest, slab.length());
        if wanted == Guards::Marked {
            slab.guards = slab.open()?;
        }
        Some(slab)
    }

    /// Opens the whole slab if markers can guard it. Otherwise, or if so much may not be open at a
    /// time, leaves the slab unchanged. Returns `None` if the slab can't be shut again.
    fn open(&self) -> Option<Guards> {
        let guard = self.shape.guard_bytes();
        // Tried before opening: locked memory takes no markers, and would be filled completely.
        if !pages::mark(self.lowest, guard) || !pages::open(self.lowest, self.length()) {
            return Some(Guards::Shut);
        }
        if pages::is_guard(self.lowest, guard) {
            return Some(Guards::Marked);
        }
        pages::shut(self.lowest, self.length()).then_some(Guards::Shut)
    }

    pub(super) fn is_used_up(&self) -> bool {
        // Relaxed: the source's lock orders it.
        self.made.load(Relaxed) == self.stacks
    }

    /// Makes the next stack and returns its limit. The caller holds the source's lock, and the slab
    /// is not used up.
    pub(super) fn make(&self) -> Result<NonZeroUsize, NoStack> {
        // Relaxed, both: the source's lock orders them.
        let made = self.made.load(Relaxed);
        debug_assert!(made < self.stacks);
        let (stride, guard) = (self.shape.stride(), self.shape.guard_bytes());
        let limit = self.lowest.wrapping_byte_add(made * stride);
        // STACK-1. Memory that was locked after the slab was opened takes no marker.
        let guarded = match self.guards {
            Guards::Marked => pages::mark(limit, guard) || pages::shut(limit, guard),
            Guards::Shut => pages::open(limit.wrapping_byte_add(guard), stride - guard),
        };
        if !guarded {
            return Err(NoStack::Mappings);
        }
        self.made.store(made + 1, Relaxed);
        NonZeroUsize::new(limit.expose_provenance()).ok_or(NoStack::Memory)
    }

    /// Returns whether `address` is in the guard of a stack that was made.
    pub(super) fn guards(&self, address: usize) -> bool {
        let Some(offset) = address.checked_sub(self.lowest.addr()) else { return false };
        let stride = self.shape.stride();
        // Relaxed: a thread that has hit a guard was handed the stack, and so sees that it was
        // made.
        offset / stride < self.made.load(Relaxed) && offset % stride < self.shape.guard_bytes()
    }

    fn length(&self) -> usize {
        self.stacks * self.shape.stride()
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        pages::unmap(self.lowest, self.length());
    }
}
