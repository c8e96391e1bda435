//! Free lists that reuse the memory of ended tasks for new ones.
//!
//! A task takes a block from the thread that makes it, and returns it to the thread that frees it.
//! If these are two threads, blocks collect where none is needed: they move back in chains, through
//! a depot of the process.
//!
//! ```text
//!          a block                  a chain of 128              a chain
//!   task ◄────────► loaded list ◄─────────────────► full list ◄────────► depot
//!                     of a thread                   of the same
//! ```
//!
//! A thread has less than two chains, and none after its end. Chains that the depot has no room for
//! are freed. After the magazines of Bonwick and Adams (USENIX ATC 2001, §3).

use std::alloc::Layout;
use std::ptr::NonNull;

use antiphon_runtime::task::{Heap, Memory};

use crate::SpinMutex;
use crate::local::{self, Lists};

/// The allocator of tasks: takes blocks from the free lists, and falls back on the heap.
#[derive(Clone, Copy)]
pub(super) struct Blocks;

/// Bytes of a block: room for a closure of four words that returns nothing, with a handle. With an
/// allocator that adds 8 bytes of its own to each block, 64.
const SIZE: usize = 56;
/// Number of blocks in a chain: 8 KiB.
const CHAIN: u32 = 128;
/// Maximum number of chains in the depot: 4 MiB.
const MOST: u32 = 512;
const BLOCK: Layout = match Layout::from_size_align(SIZE, align_of::<u64>()) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// The first words of a free block.
struct Free {
    /// The next block of its list.
    next: Option<NonNull<u8>>,
    /// The next chain of the depot. Only set in the first block of a chain.
    next_chain: Option<NonNull<u8>>,
}

/// The chains of blocks that no thread holds.
struct Depot {
    first: Option<NonNull<u8>>,
    chains: u32,
}

// SAFETY: blocks are heap memory, and the depot owns those that are in it.
unsafe impl Send for Depot {}

/// Only ever tried, never waited for: in a child of a fork it may stay locked for ever, and the
/// child then goes without it.
static DEPOT: SpinMutex<Depot> = SpinMutex::new(Depot { first: None, chains: 0 });

impl Depot {
    /// Returns `false` if the depot is full.
    fn push(&mut self, chain: NonNull<u8>) -> bool {
        if self.chains == MOST {
            return false;
        }
        // SAFETY: the block is ours, and has room for a `Free`.
        unsafe { (*chain.cast::<Free>().as_ptr()).next_chain = self.first };
        self.first = Some(chain);
        self.chains += 1;
        true
    }

    fn pop(&mut self) -> Option<NonNull<u8>> {
        let first = self.first?;
        // SAFETY: written by `push`.
        self.first = unsafe { (*first.cast::<Free>().as_ptr()).next_chain };
        self.chains -= 1;
        Some(first)
    }
}

/// Frees the lists of the calling thread.
struct Ends;

thread_local! {
    static ENDS: Ends = const { Ends };
}

impl Lists {
    #[inline]
    fn pop(&self) -> Option<NonNull<u8>> {
        let first = self.loaded.get()?;
        // SAFETY: blocks on the list are ours, and begin with a `Free`.
        self.loaded.set(unsafe { (*first.cast::<Free>().as_ptr()).next });
        self.room.set(self.room.get() + 1);
        Some(first)
    }

    /// Returns `false` if there is no room.
    #[inline]
    fn push(&self, block: NonNull<u8>) -> bool {
        let Some(room) = self.room.get().checked_sub(1) else { return false };
        let free = Free { next: self.loaded.get(), next_chain: None };
        // SAFETY: the block is ours, and has room for a `Free`.
        unsafe { block.cast::<Free>().write(free) };
        self.loaded.set(Some(block));
        self.room.set(room);
        true
    }

    /// Loads a full chain, from the thread or the depot. Called with nothing loaded.
    fn load(&self) {
        if !self.is_open.get() {
            return;
        }
        let chain = self.full.take().or_else(|| DEPOT.try_lock()?.pop());
        if chain.is_some() {
            self.loaded.set(chain);
            self.room.set(0);
        }
    }

    /// Makes room for blocks; returns whether it did. It does so only while [`Ends`] is going to
    /// free the lists: not before it is registered, nor after it has run.
    fn make_room(&self) -> bool {
        if !self.is_open.get() {
            return false;
        }
        if let Some(chain) = self.full.replace(self.loaded.take())
            && !DEPOT.try_lock().is_some_and(|mut depot| depot.push(chain))
        {
            free(Some(chain));
        }
        self.room.set(CHAIN);
        true
    }
}

/// Frees a list of blocks.
fn free(mut list: Option<NonNull<u8>>) {
    while let Some(block) = list {
        // SAFETY: blocks on a list begin with a `Free`; they come from `Blocks::allocate`, and are
        // on no other list.
        unsafe {
            list = (*block.cast::<Free>().as_ptr()).next;
            Heap::free(block, BLOCK);
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        local::with(|own| {
            let lists = &own.blocks;
            lists.is_open.set(false);
            lists.room.set(0);
            free(lists.loaded.take());
            free(lists.full.take());
        });
    }
}

/// Calls [`Lists::load`], then takes a block. Stays on one thread from beginning to end.
#[cold]
#[inline(never)]
fn load_and_pop() -> Option<NonNull<u8>> {
    open();
    local::with(|own| {
        own.blocks.load();
        own.blocks.pop()
    })
}

/// Calls [`Lists::make_room`], then keeps the block. Returns `false` if the caller must free it.
/// Stays on one thread from beginning to end.
#[cold]
#[inline(never)]
fn make_room_and_push(block: NonNull<u8>) -> bool {
    open();
    local::with(|own| own.blocks.make_room() && own.blocks.push(block))
}

/// Opens the lists of the calling thread, if it has not ended.
fn open() {
    if !local::with(|own| own.blocks.is_open.get()) {
        // Fails if the thread is ending.
        let _ = ENDS.try_with(|_| {
            local::with(|own| {
                own.blocks.is_open.set(true);
                own.blocks.room.set(CHAIN);
            });
        });
    }
}

const fn fits(layout: Layout) -> bool {
    layout.size() <= BLOCK.size() && layout.align() <= BLOCK.align()
}

// SAFETY: a block is either on one list or handed out; a task that does not fit into a block is
// allocated and freed by the heap.
unsafe impl Memory for Blocks {
    #[inline]
    fn allocate(layout: Layout) -> NonNull<u8> {
        if !fits(layout) {
            return Heap::allocate(layout);
        }
        let block = local::with(|own| own.blocks.pop());
        block.or_else(load_and_pop).unwrap_or_else(|| Heap::allocate(BLOCK))
    }

    #[inline]
    unsafe fn free(place: NonNull<u8>, layout: Layout) {
        if !fits(layout) {
            // SAFETY: promised by the caller.
            return unsafe { Heap::free(place, layout) };
        }
        if !local::with(|own| own.blocks.push(place)) && !make_room_and_push(place) {
            // SAFETY: promised by the caller, and it was allocated as a block.
            unsafe { Heap::free(place, BLOCK) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::BTreeSet;
    use std::thread;

    /// Allocates `count` blocks at once and frees them; returns their addresses.
    fn many(count: u32) -> BTreeSet<usize> {
        let small = Layout::new::<[u64; 4]>();
        let blocks: Vec<_> = (0..count).map(|_| Blocks::allocate(small)).collect();
        let addresses = blocks.iter().map(|block| block.addr().get()).collect();
        // SAFETY: each block comes from `allocate`, and is freed once.
        blocks.into_iter().for_each(|block| unsafe { Blocks::free(block, small) });
        addresses
    }

    #[test]
    fn a_block_is_used_again_and_lists_have_an_end() {
        let (small, large) = (Layout::new::<[u64; 4]>(), Layout::new::<[u64; 8]>());
        let one = Blocks::allocate(small);
        // SAFETY: all of them come from `allocate`, and are freed once.
        unsafe {
            Blocks::free(one, small);
            assert_eq!(Blocks::allocate(Layout::new::<u64>()), one);
            Blocks::free(one, small);
            let other = Blocks::allocate(large);
            assert_ne!(other, one);
            Blocks::free(other, large);
        }
        assert_eq!(many(3 * CHAIN).len() as u32, 3 * CHAIN, "each has one user");
        local::with(|own| {
            let count = |mut list: Option<NonNull<u8>>| {
                let mut blocks = 0;
                while let Some(block) = list {
                    blocks += 1;
                    // SAFETY: blocks on a list begin with a `Free`.
                    list = unsafe { (*block.cast::<Free>().as_ptr()).next };
                }
                blocks
            };
            assert_eq!(count(own.blocks.loaded.get()) + own.blocks.room.get(), CHAIN);
            assert_eq!(count(own.blocks.full.get()), CHAIN);
        });
    }

    #[test]
    fn blocks_that_one_thread_frees_are_there_for_others() {
        let first = thread::spawn(|| many(64 * CHAIN)).join().expect("it ends");
        let again = many(16 * CHAIN);
        // Tests beside this one take some, and the thread's last ones were freed.
        assert!(again.intersection(&first).count() > 0);
    }

    #[test]
    fn the_depot_has_an_end() {
        let mut depot = Depot { first: None, chains: 0 };
        let blocks: Vec<_> = (0..=MOST).map(|_| Heap::allocate(BLOCK)).collect();
        let kept: Vec<_> = blocks.iter().map(|&block| depot.push(block)).collect();
        assert!(kept[..MOST as usize].iter().all(|&kept| kept) && !kept[MOST as usize]);
        let popped: Vec<_> = std::iter::from_fn(|| depot.pop()).collect();
        assert!(popped.iter().eq(blocks[..MOST as usize].iter().rev()));
        // SAFETY: each block comes from the heap, and is freed once.
        blocks.into_iter().for_each(|block| unsafe { Heap::free(block, BLOCK) });
    }
}
