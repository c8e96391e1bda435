//! The sizes of stacks, and their positions in a slab.

use core::num::NonZeroUsize;
use core::ptr::with_exposed_provenance_mut;

use super::BadSize;
use crate::pages;

/// The smallest size of a stack: in less, the frame of a signal handler, which holds all vector
/// registers, may not fit (`AT_MINSIGSTKSZ` in Linux's `elf_auxvec.rst`).
pub const LEAST_BYTES: usize = 8 << 10;

/// The distance between two colours: two cache lines, which processors fetch together.
pub(super) const COLOUR_BYTES: usize = 128;
/// Number of colours: they span half a page, and the stack use of a waiting fiber fits in the other
/// half.
pub(super) const COLOURS: usize = 16;

/// The largest size of a slab, unless a stack is larger.
const SLAB_BYTES: usize = 64 << 20;
/// Number of stacks in the first slab.
const FIRST: usize = 64;

/// The sizes of the stacks of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    page: usize,
    /// The distance from one stack to the next: the guard, the requested bytes and all colours, in
    /// an odd number of pages.
    stride: usize,
}

impl Shape {
    pub(super) fn new(bytes: usize) -> Result<Self, BadSize> {
        if bytes < LEAST_BYTES {
            return Err(BadSize::Small(bytes));
        }
        let page = pages::size();
        let stride = bytes
            .checked_add((COLOURS - 1) * COLOUR_BYTES)
            .and_then(|usable| usable.checked_next_multiple_of(page)?.checked_add(page))
            .map(|stride| stride | page)
            .filter(|&stride| isize::try_from(stride).is_ok())
            .ok_or(BadSize::Large(bytes))?;
        Ok(Self { page, stride })
    }

    pub(super) fn guard_bytes(self) -> usize {
        self.page
    }

    pub(super) fn stride(self) -> usize {
        self.stride
    }

    /// The base of the stack with that limit. Neighbours have different colours.
    pub(super) fn base(self, limit: NonZeroUsize) -> NonZeroUsize {
        let colour = limit.get() / self.stride % COLOURS;
        // This can't overflow: the end of a mapping is an address, and the colour is less than a
        // page.
        limit.saturating_add(self.stride - colour * COLOUR_BYTES)
    }

    /// Number of stacks of the next slab, when there are `made`: the same number again, within
    /// bounds.
    pub(super) fn next_slab(self, made: usize) -> usize {
        made.max(FIRST).min(self.largest_slab())
    }

    fn largest_slab(self) -> usize {
        (SLAB_BYTES / self.stride).max(1)
    }

    /// Gives the memory of these stacks, which are in ascending order, back to the kernel. Memory
    /// that it refuses stays resident. STACK-1: guards stay.
    pub(super) fn discard(self, limits: &[NonZeroUsize]) {
        let neighbours =
            |one: &NonZeroUsize, next: &NonZeroUsize| next.get() - one.get() == self.stride;
        for run in limits.chunk_by(neighbours).flat_map(|run| run.chunks(self.largest_slab())) {
            // From the end of the first guard to the end of the last stack.
            let at = with_exposed_provenance_mut(run[0].get() + self.page);
            pages::discard(at, run.len() * self.stride - self.page);
        }
    }
}
