//! Sizes: what a stack is made of, and where in a slab it is.

use core::num::NonZeroUsize;
use core::ptr::with_exposed_provenance_mut;

use super::BadSize;
use crate::pages;

/// The least that can be asked for: with less, the frame of a signal handler on the stack, which
/// holds all vector registers, may not fit (`AT_MINSIGSTKSZ` in Linux's `elf_auxvec.rst`).
pub const LEAST_BYTES: usize = 8 << 10;

/// Tops differ by so much: two lines, which processors fetch together.
pub(super) const COLOUR_BYTES: usize = 128;
/// As many as reach over half a page: what a fiber that waits has used fits in the other half.
pub(super) const COLOURS: usize = 16;

/// A slab is so large at most, unless a stack is larger.
const SLAB_BYTES: usize = 64 << 20;
/// Stacks in the first slab.
const FIRST: usize = 64;

/// The sizes of the stacks of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    page: usize,
    /// From one stack to the next: the guard, the bytes asked for and all colours, in an odd number
    /// of pages.
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

    /// Where the stack of that limit begins. Neighbours have different colours.
    pub(super) fn base(self, limit: NonZeroUsize) -> NonZeroUsize {
        let colour = limit.get() / self.stride % COLOURS;
        // The end of a mapping is an address, and what is taken off is less than a page.
        limit.saturating_add(self.stride - colour * COLOUR_BYTES)
    }

    /// How many stacks the next slab has, when there are `made`: as many again, within bounds.
    pub(super) fn next_slab(self, made: usize) -> usize {
        made.max(FIRST).min(self.largest_slab())
    }

    fn largest_slab(self) -> usize {
        (SLAB_BYTES / self.stride).max(1)
    }

    /// Gives the memory of these stacks, in ascending order, back to the kernel. What it refuses to
    /// take stays. STACK-1: guards stay.
    pub(super) fn discard(self, limits: &[NonZeroUsize]) {
        let neighbours =
            |one: &NonZeroUsize, next: &NonZeroUsize| next.get() - one.get() == self.stride;
        for run in limits.chunk_by(neighbours).flat_map(|run| run.chunks(self.largest_slab())) {
            // Between the guard of the first and the end of the last.
            let at = with_exposed_provenance_mut(run[0].get() + self.page);
            pages::discard(at, run.len() * self.stride - self.page);
        }
    }
}
