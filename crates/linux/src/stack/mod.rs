//! Stacks for fibers: guarded memory, taken and given back.
//!
//! ```
//! use antiphon_linux::stack::Stacks;
//!
//! let stacks = Stacks::new(64 << 10)?;
//! let stack = stacks.take()?;
//! assert!(stack.base().get() - stack.limit().get() > 64 << 10);
//! drop(stack); // to be taken again
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All stacks of a source have one size:
//!
//! ```text
//!  limit                                                        base
//!  ├─────────┬──────────────────────────────────────────────────┼──────────┤
//!  │  guard  │         ◄── the stack grows down, bytes or more  │  colour  │
//!  └─────────┴──────────────────────────────────────────────────┴──────────┘
//!   one page        whole pages, together with the colour
//! ```
//!
//! | state of a stack | its memory | its holder |
//! |---|---|---|
//! | fresh | was never touched | a slab, beyond those that it has made |
//! | taken | used by its owner | a [`Stack`] |
//! | hot | as its last owner left it | the source: last given back, first taken |
//! | cold | given back to the kernel | the source: taken when none is hot |
//!
//! **Touching a page for the first time costs more than a hundred switches of fibers**, so hot
//! stacks come first, and fresh ones last. [`Stacks::trim`] makes hot ones cold, so that a burst of
//! fibers does not stay resident for ever: it uses `MADV_DONTNEED`, because the pages are gone when
//! it returns, and the process's size shows it. `MADV_FREE` would take them only when memory is
//! short, count them until then, and zero them one by one all the same. The topmost page is given
//! back, too: for a million stacks that ran something short, it is the only resident page.
//!
//! **Colour.** Stacks at equal distances have their tops in the same few sets of a cache. So the
//! base is 0 to 15 times 128 bytes below the end of the last page, by the stack's number; room for
//! the largest colour, 1920 bytes, is added to the requested size. Twice as many colours would use
//! all sets of a first-level cache, which repeat with each page; but then, of waiting fibers that
//! use a quarter of a page, every fourth would touch a second page. For the second-level cache,
//! stacks are an odd number of pages apart.
//!
//! **Guards** are markers in the page table (Linux 6.13) where possible. Otherwise each stack is
//! two mappings, and by default (`vm.max_map_count`) there can be some 32 000. A frame of more than
//! a page may step over a guard if the compiler does not probe; Rust's does, and C compilers do
//! with `-fstack-clash-protection`.
//!
//! A source has one mutex of `std`, held for a few instructions, or for the system calls that make
//! a stack; its holder waits for nothing else, so it is harmless to a caller that suspends fibers.
//! A caller that takes and gives back at a high rate should keep some stacks per thread. As with
//! other locks of `std`, a signal handler must not use a source, nor may the child of a fork that
//! interrupted a call of another thread; [`Stacks::guards`] is allowed in both. `errno` is
//! preserved.
//!
//! A stack of 64 KiB costs 170 bytes of page tables and lists until the source is dropped, and its
//! touched pages until it is cold. `examples/stacks.rs` measures the times.
//!
//! Invariants, cited where the code keeps them:
//! - STACK-1: a stack's guard is in place before the stack is first handed out, and stays.
//! - STACK-2: a stack has one owner: a `Stack`, one of the lists, or `trim` for a moment.
//! - STACK-3: each list has room for all stacks made, so that giving back needs no memory.
//! - STACK-4: slabs stay mapped while the source or a `Stack` of it exists: each holds a reference.

mod error;
mod shape;
mod slab;
mod source;
#[cfg(test)]
mod tests;

use core::fmt;
use core::num::NonZeroUsize;
use std::sync::Arc;

pub use error::{BadSize, NoStack};
pub use shape::LEAST_BYTES;
use shape::Shape;
use slab::Guards;
use source::Source;

/// A source of stacks of one size, for all threads. Clones share the source.
#[derive(Clone)]
pub struct Stacks(Arc<Source>);

/// The numbers of stacks of a source; may be stale at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// All stacks: taken, hot or cold.
    pub made: usize,
    /// Free stacks that may be resident.
    pub hot: usize,
    /// Free stacks without memory.
    pub cold: usize,
}

impl Stacks {
    /// Creates a source of stacks with room for `bytes` each. It maps nothing until the first stack
    /// is taken.
    ///
    /// # Errors
    ///
    /// [`BadSize`] if `bytes` is less than [`LEAST_BYTES`], or more than an object may have.
    pub fn new(bytes: usize) -> Result<Self, BadSize> {
        Self::with(bytes, Guards::Marked)
    }

    fn with(bytes: usize, guards: Guards) -> Result<Self, BadSize> {
        Ok(Self(Arc::new(Source::new(Shape::new(bytes)?, guards))))
    }

    /// Takes a stack: the hot stack that was given back last, otherwise a cold one, otherwise a new
    /// one. Its memory holds whatever its last owner left.
    ///
    /// # Errors
    ///
    /// [`NoStack`] if all stacks are taken and the kernel gives no more memory. A later call may
    /// succeed, after stacks have been given back.
    pub fn take(&self) -> Result<Stack, NoStack> {
        let mut free = self.0.free();
        let found = free.hot.pop().or_else(|| free.cold.pop());
        let limit = match found {
            Some(limit) => limit,
            None => self.0.make(&mut free)?,
        };
        drop(free);
        // STACK-4: with a reference to the source.
        Ok(Stack { limit, base: self.0.shape.base(limit), source: Arc::clone(&self.0) })
    }

    /// Gives the memory of hot stacks back to the kernel, the longest unused first, until `keep`
    /// are left. Returns the number of stacks that became cold. Locked memory (`mlockall`) stays
    /// resident.
    ///
    /// One system call handles neighbours, up to 64 MiB. Other threads may take and give stacks
    /// meanwhile, except those that are becoming cold.
    pub fn trim(&self, keep: usize) -> usize {
        let mut cooling = {
            let mut free = self.0.free();
            let beyond = free.hot.len().saturating_sub(keep);
            // STACK-2: `trim` owns them until they are in the other list.
            free.hot.drain(..beyond).collect::<Vec<_>>()
        };
        cooling.sort_unstable();
        self.0.shape.discard(&cooling);
        self.0.free().cold.extend_from_slice(&cooling);
        cooling.len()
    }

    /// The numbers of stacks. Takes the source's lock.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let free = self.0.free();
        Counts { made: free.made, hot: free.hot.len(), cold: free.cold.len() }
    }

    /// Returns whether `address` is in the guard of a stack of this source, taken or not, so that a
    /// handler of `SIGSEGV` can recognise an overflow. May be called in such a handler: takes no
    /// lock and allocates nothing. Searches all slabs, of which there are some 16 per GiB of
    /// stacks.
    #[must_use]
    pub fn guards(&self, address: usize) -> bool {
        self.0.guards(address)
    }
}

impl fmt::Debug for Stacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stacks").field(&self.counts()).finish()
    }
}

/// A stack that belongs to its owner until this value is dropped, which gives it back.
///
/// The value is two addresses; the memory between them, except the guard, is exclusively its
/// owner's. It must not be dropped by code that runs on it.
pub struct Stack {
    limit: NonZeroUsize,
    base: NonZeroUsize,
    source: Arc<Source>,
}

impl Stack {
    /// The address after the highest byte, from which the stack grows down. A multiple of 128.
    #[must_use]
    pub fn base(&self) -> NonZeroUsize {
        self.base
    }

    /// The lowest address, where the guard begins. A multiple of the page size.
    #[must_use]
    pub fn limit(&self) -> NonZeroUsize {
        self.limit
    }

    /// Number of usable bytes from the base down: at least the requested size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.base.get() - self.limit.get() - self.source.shape.guard_bytes()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // STACK-3: the list has room.
        self.source.free().hot.push(self.limit);
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stack({:#x}..{:#x})", self.limit, self.base)
    }
}
