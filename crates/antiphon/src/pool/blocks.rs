//! Memory of tasks that have ended, for those to come: a list of blocks for each thread.
//!
//! A task takes a block of the thread that makes it, and leaves it to the thread that frees it.
//! Where these are two, blocks move from one list to the other: so no list is longer than `MOST`,
//! and further blocks are freed. The rest is freed when the thread ends. A list has room as long as
//! [`ENDS`] is there.

use std::alloc::Layout;
use std::ptr::NonNull;

use antiphon_runtime::task::{Heap, Memory};

use crate::local::{self, List};

/// The lists.
#[derive(Clone, Copy)]
pub(super) struct Blocks;

/// Room for a closure of four words that returns nothing, with a handle; in an allocator that has
/// 8 bytes of its own at each block, 64.
const SIZE: usize = 56;
/// The most blocks of a list, which are 64 KiB.
const MOST: u32 = 1_024;
const BLOCK: Layout = match Layout::from_size_align(SIZE, align_of::<u64>()) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// Frees the list of the calling thread.
struct Ends;

thread_local! {
    static ENDS: Ends = const { Ends };
}

/// Whether the calling thread's list has room from now on. On one thread from its beginning to its
/// end.
#[cold]
#[inline(never)]
fn begins() -> bool {
    let is_new = local::with(|own| own.blocks.first.get().is_none());
    is_new && ENDS.try_with(|_| local::with(|own| own.blocks.room.set(MOST))).is_ok()
}

impl List {
    fn pop(&self) -> Option<NonNull<u8>> {
        let first = self.first.get()?;
        // SAFETY: blocks on the list are ours, and begin with this.
        self.first.set(unsafe { first.cast::<Option<NonNull<u8>>>().read() });
        self.room.set(self.room.get() + 1);
        Some(first)
    }

    /// `false`: there are enough.
    fn push(&self, block: NonNull<u8>) -> bool {
        if self.room.get() == 0 {
            return false;
        }
        // SAFETY: the block is ours, and has room for an address.
        unsafe { block.cast::<Option<NonNull<u8>>>().write(self.first.get()) };
        self.first.set(Some(block));
        self.room.set(self.room.get() - 1);
        true
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        local::with(|own| {
            while let Some(block) = own.blocks.pop() {
                // SAFETY: of `Blocks::allocate`, and on no list any more.
                unsafe { Heap::free(block, BLOCK) };
            }
            own.blocks.room.set(0);
        });
    }
}

const fn fits(layout: Layout) -> bool {
    layout.size() <= BLOCK.size() && layout.align() <= BLOCK.align()
}

// SAFETY: a block is on one list, or handed out; and a task that does not fit into one is the
// heap's.
unsafe impl Memory for Blocks {
    #[inline]
    fn allocate(layout: Layout) -> NonNull<u8> {
        if !fits(layout) {
            return Heap::allocate(layout);
        }
        let block = local::with(|own| own.blocks.pop());
        block.unwrap_or_else(|| Heap::allocate(BLOCK))
    }

    #[inline]
    unsafe fn free(place: NonNull<u8>, layout: Layout) {
        if !fits(layout) {
            // SAFETY: the caller's.
            return unsafe { Heap::free(place, layout) };
        }
        let push = || local::with(|own| own.blocks.push(place));
        // No list: the thread has just begun, or is about to end.
        let is_kept = push() || begins() && push();
        if !is_kept {
            // SAFETY: the caller's, and it was allocated as a block.
            unsafe { Heap::free(place, BLOCK) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_and_a_list_has_an_end() {
        let (small, large) = (Layout::new::<[u64; 4]>(), Layout::new::<[u64; 8]>());
        let one = Blocks::allocate(small);
        // SAFETY: all of them are of `allocate`, and freed once.
        unsafe {
            Blocks::free(one, small);
            assert_eq!(Blocks::allocate(Layout::new::<u64>()), one);
            Blocks::free(one, small);
            let other = Blocks::allocate(large);
            assert_ne!(other, one);
            Blocks::free(other, large);
            let many: Vec<_> = (0..2 * MOST).map(|_| Blocks::allocate(small)).collect();
            many.into_iter().for_each(|block| Blocks::free(block, small));
        }
        assert_eq!(local::with(|own| own.blocks.room.get()), 0);
    }
}
