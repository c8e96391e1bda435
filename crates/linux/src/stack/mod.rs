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
//! | a stack is | its memory | its holder |
//! |---|---|---|
//! | fresh | was never touched | a slab, beyond those that it has made |
//! | taken | its owner's | a [`Stack`] |
//! | hot | as its last owner left it | the source: the one given back last is taken first |
//! | cold | went back to the kernel | the source: taken when none is hot |
//!
//! **Touching a page for the first time costs more than a hundred switches of fibers**, so hot
//! stacks come first, and fresh ones last. [`Stacks::trim`] makes hot ones cold, so that a burst of
//! fibers does not stay resident for ever: by `MADV_DONTNEED`, for the pages are gone when it
//! returns, and a reader of the process's size sees it. `MADV_FREE` would take them when memory is
//! short, count them till then, and zero them one by one all the same. The topmost page goes too:
//! of a million stacks that ran something short, it is all there is.
//!
//! **Colour.** Stacks at equal distances have their tops in the same few sets of a cache. So the
//! base is 0 to 15 times 128 bytes below the end of the last page, by the stack's number; room for
//! the largest, 1920 bytes, is added to what is asked for. With twice as many colours all sets of
//! a first-level cache would be used, which repeat with each page; but of those that use a quarter
//! of a page, and wait, every fourth would touch a second one. For the second level stacks are an
//! odd number of pages apart.
//!
//! **Guards** are markers in the page table (Linux 6.13) where possible. Otherwise each stack is
//! two mappings, and by default (`vm.max_map_count`) there can be some 32 000. A frame of more than
//! a page may step over a guard, if its compiler does not probe; that of Rust does, and C's with
//! `-fstack-clash-protection`.
//!
//! A source is one mutex of `std`, held for a few instructions, or for the system calls that make a
//! stack; its holder waits for nothing else, so a caller that suspends fibers needs not think of
//! it. A caller that takes and gives at a high rate keeps some stacks per thread. As with other
//! locks of `std`, a signal handler must not use a source, nor the child of a fork by which a call
//! of another thread was cut short; [`Stacks::guards`] is for both. `errno` stays what it was.
//!
//! A stack of 64 KiB costs 170 bytes of page tables and lists till the source goes, and the pages
//! that were touched till it is cold. `examples/stacks.rs` measures the times.
//!
//! Invariants, cited where the code keeps them:
//! - STACK-1: a stack's guard is there before the stack is first handed out, and stays.
//! - STACK-2: a stack is with one owner: a `Stack`, one of the lists, or `trim` for a moment.
//! - STACK-3: each list has room for all stacks made, so that giving back needs no memory.
//! - STACK-4: slabs stay mapped while the source or a `Stack` of it exists: each has its share.

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

/// A source of stacks of one size, for all threads. Clones are the same source.
#[derive(Clone)]
pub struct Stacks(Arc<Source>);

/// How many stacks there are, as a source counted them a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Taken, hot or cold.
    pub made: usize,
    /// Free, and perhaps resident.
    pub hot: usize,
    /// Free, without memory.
    pub cold: usize,
}

impl Stacks {
    /// A source of stacks with room for `bytes` each. It maps nothing before one is taken.
    ///
    /// # Errors
    ///
    /// [`BadSize`] if that is less than [`LEAST_BYTES`], or more than an address can say.
    pub fn new(bytes: usize) -> Result<Self, BadSize> {
        Self::with(bytes, Guards::Marked)
    }

    fn with(bytes: usize, guards: Guards) -> Result<Self, BadSize> {
        Ok(Self(Arc::new(Source::new(Shape::new(bytes)?, guards))))
    }

    /// Takes a stack: the one that was given back last, else one whose memory went back to the
    /// kernel, else a new one. Its memory holds whatever its last owner left.
    ///
    /// # Errors
    ///
    /// [`NoStack`] if all are taken and the kernel gives no more. Others may be given back later.
    pub fn take(&self) -> Result<Stack, NoStack> {
        let mut free = self.0.free();
        let found = free.hot.pop().or_else(|| free.cold.pop());
        let limit = match found {
            Some(limit) => limit,
            None => self.0.make(&mut free)?,
        };
        drop(free);
        // STACK-4: with a share of the source.
        Ok(Stack { limit, base: self.0.shape.base(limit), source: Arc::clone(&self.0) })
    }

    /// Gives the memory of hot stacks back to the kernel, the longest unused first, until `keep`
    /// are left. Returns how many became cold. Memory that is locked (`mlockall`) stays.
    ///
    /// One system call for neighbours, and for 64 MiB at most. Others may take and give meanwhile,
    /// but not those that are becoming cold.
    pub fn trim(&self, keep: usize) -> usize {
        let mut cooling = {
            let mut free = self.0.free();
            let beyond = free.hot.len().saturating_sub(keep);
            // STACK-2: ours, until they are put in the other list.
            free.hot.drain(..beyond).collect::<Vec<_>>()
        };
        cooling.sort_unstable();
        self.0.shape.discard(&cooling);
        self.0.free().cold.extend_from_slice(&cooling);
        cooling.len()
    }

    /// How many stacks there are.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let free = self.0.free();
        Counts { made: free.made, hot: free.hot.len(), cold: free.cold.len() }
    }

    /// Whether `address` is in the guard of a stack of this source, taken or not: so that a handler
    /// of `SIGSEGV` can tell an overflow. It may be called in one: it takes no lock and allocates
    /// nothing. It looks at each slab, of which there are some 16 a GiB of stacks.
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

/// A stack that belongs to its owner until this is dropped, which gives it back.
///
/// It is two addresses; the memory between them, except the guard, belongs to no other. Do not drop
/// it where it is being run on.
pub struct Stack {
    limit: NonZeroUsize,
    base: NonZeroUsize,
    source: Arc<Source>,
}

impl Stack {
    /// The address behind the highest byte, from which the stack grows down. A multiple of 128.
    #[must_use]
    pub fn base(&self) -> NonZeroUsize {
        self.base
    }

    /// The lowest address, which is that of the guard. A multiple of the page size.
    #[must_use]
    pub fn limit(&self) -> NonZeroUsize {
        self.limit
    }

    /// How many bytes from the base down can be used: those asked for, or some more.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.base.get() - self.limit.get() - self.source.shape.guard_bytes()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // STACK-3: there is room.
        self.source.free().hot.push(self.limit);
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stack({:#x}..{:#x})", self.limit, self.base)
    }
}
