//! The memory of tasks: blocks that a worker has freed serve for the next tasks of that worker,
//! because the kernel's heap is one lock for all CPUs of a node.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::NonNull;

use antiphon_runtime::task::{Heap, Memory};

use super::pool;

/// Bytes of a block: room for a closure of nine words, with a handle.
const SIZE: usize = 96;
const BLOCK: Layout = match Layout::from_size_align(SIZE, align_of::<u64>()) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};
/// Largest number of blocks that a worker keeps.
const MOST: u32 = 256;

/// Takes blocks from the list of the worker that the caller is, otherwise from the heap.
#[derive(Clone, Copy)]
pub struct Blocks;

/// The free blocks of a worker; each begins with the address of the next.
pub struct FreeBlocks {
    first: Cell<Option<NonNull<u8>>>,
    count: Cell<u32>,
}

impl FreeBlocks {
    pub const fn new() -> Self {
        Self { first: Cell::new(None), count: Cell::new(0) }
    }

    fn pop(&self) -> Option<NonNull<u8>> {
        let first = self.first.get()?;
        // SAFETY: blocks of the list belong to the worker, and begin with the address of the next.
        self.first.set(unsafe { first.cast::<Option<NonNull<u8>>>().read() });
        self.count.set(self.count.get() - 1);
        Some(first)
    }

    /// Puts a block on the list. Returns `false` if the worker has enough blocks.
    fn push(&self, block: NonNull<u8>) -> bool {
        if self.count.get() == MOST {
            return false;
        }
        // SAFETY: the block belongs to the caller, and has room for an address.
        unsafe { block.cast::<Option<NonNull<u8>>>().write(self.first.get()) };
        self.first.set(Some(block));
        self.count.set(self.count.get() + 1);
        true
    }
}

impl Drop for FreeBlocks {
    fn drop(&mut self) {
        while let Some(block) = self.pop() {
            // SAFETY: the block is from the heap, with this layout, and no longer on the list.
            unsafe { Heap::free(block, BLOCK) };
        }
    }
}

fn fits(layout: Layout) -> bool {
    layout.size() <= SIZE && layout.align() <= BLOCK.align()
}

// SAFETY: a block has room for each layout that fits, and is on one list or belongs to one task;
// the heap answers for all other memory.
unsafe impl Memory for Blocks {
    #[inline]
    fn allocate(layout: Layout) -> NonNull<u8> {
        if !fits(layout) {
            return Heap::allocate(layout);
        }
        pool::with_free_blocks(FreeBlocks::pop).unwrap_or_else(|| Heap::allocate(BLOCK))
    }

    #[inline]
    unsafe fn free(place: NonNull<u8>, layout: Layout) {
        let kept = fits(layout)
            && pool::with_free_blocks(|blocks| blocks.push(place).then_some(())).is_some();
        if !kept {
            let layout = if fits(layout) { BLOCK } else { layout };
            // SAFETY: the caller's contract; `allocate` has taken it with this layout.
            unsafe { Heap::free(place, layout) };
        }
    }
}
