//! The frames and heaps of nodes, and the global allocator.
//!
//! A block of memory is on the node of the CPU that allocates it, whichever CPU touches it first.
//! If that node has no memory left, the next node is tried. A heap grows by pieces of its node's
//! frames, and keeps them.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;

use talc::DefaultBinning;
use talc::base::Talc;
use talc::source::Manual;

use super::cpu;
use super::lock::Lock;
use crate::memory::{FRAME, Frames, Map};
use crate::pvh::Range;
use crate::x86::paging::{OutOfFrames, Tables};

pub use crate::machine::MOST_NODES;

/// Size of the pieces by which a heap grows, in bytes.
const PIECE: u64 = 2 << 20;

struct Node {
    frames: Frames,
    heap: Talc<Manual, DefaultBinning>,
}

static NODES: [Lock<Node>; MOST_NODES] =
    [const { Lock::new(Node { frames: Frames::NEW, heap: Talc::new(Manual) }) }; MOST_NODES];
static MAP: Kept = Kept(UnsafeCell::new(Map::NEW));

/// The map of memory: written once, and then read by each deallocation, without a lock.
struct Kept(UnsafeCell<Map>);

// SAFETY: `set_up` writes it before there is another CPU and before the first allocation.
unsafe impl Sync for Kept {}

fn map() -> &'static Map {
    // SAFETY: `set_up` has written the map, and nothing writes to it afterwards.
    unsafe { &*MAP.0.get() }
}

static TABLES: Lock<Option<Tables>> = Lock::new(None);

/// The allocator of an image.
#[derive(Debug)]
pub struct Heap;

#[cfg(antiphon_image)]
#[global_allocator]
static HEAP: Heap = Heap;

/// Takes over the memory of the machine, and makes the page tables, which leave out `hole`; returns
/// the address of their root.
///
/// # Safety
///
/// The memory below 4 GiB is mapped at its physical addresses, and no other code uses the memory of
/// the map. Called once.
pub(super) unsafe fn set_up(map: &Map, hole: Range) -> Result<u64, OutOfFrames> {
    // SAFETY: called once, before any other function of this file.
    unsafe { *MAP.0.get() = map.clone() };
    for region in map.regions() {
        // Memory above 4 GiB is not mapped yet, so the tables are made in the memory below.
        let (low, _) = region.range.split(4 << 30);
        if low.length() > 0 {
            add(region.node, low);
        }
    }
    // SAFETY: only this kernel uses the frames, and they are mapped, because they are below 4 GiB.
    let tables = unsafe { Tables::new(map, hole, &mut || frame(0))? };
    let root = tables.root();
    *TABLES.lock() = Some(tables);
    Ok(root)
}

/// Takes over the memory above 4 GiB, which is mapped by now.
pub(super) fn add_high(map: &Map) {
    for region in map.regions() {
        let (_, high) = region.range.split(4 << 30);
        if high.length() > 0 {
            add(region.node, high);
        }
    }
}

fn add(node: u16, range: Range) {
    let added = NODES[usize::from(node)].lock().frames.add(range);
    assert!(added, "a node has a place for each range of the map, of which one is split");
}

/// Takes a frame of that node, or of another.
pub(super) fn frame(node: u16) -> Option<u64> {
    // SAFETY: frames that were given back are mapped, and no other code uses them.
    on_some_node(node, |node| unsafe { node.frames.take_one() })
}

/// Tries a node, and then the others.
fn on_some_node<T>(first: u16, mut get: impl FnMut(&mut Node) -> Option<T>) -> Option<T> {
    let count = cpu::nodes() as usize;
    (0..count).find_map(|step| get(&mut NODES[(usize::from(first) + step) % count].lock()))
}

/// Gives back a frame that [`frame`] has returned, and that no code has used or mapped.
fn give_back(frame: u64) {
    let node = node_of(frame as usize);
    // SAFETY: the frame was taken from that node, and is mapped at its physical address.
    unsafe { NODES[usize::from(node)].lock().frames.give(frame) };
}

/// Maps a stack in frames of that node; returns its ends. If there are too few frames, none is
/// taken but those of page tables, which serve the next attempt.
///
/// # Safety
///
/// No stack with this index was mapped before.
pub(super) unsafe fn map_stack(index: usize, node: u16) -> Result<(usize, usize), OutOfFrames> {
    let mut tables = TABLES.lock();
    let tables = tables.as_mut().ok_or(OutOfFrames)?;
    // SAFETY: no other code uses the frames; the caller's promise.
    unsafe { tables.map_stack(index, &mut || frame(node), &mut give_back) }
}

/// Returns the node of the memory of a stack, by the address of one of its bytes.
#[must_use]
pub fn node_of_stack(address: usize) -> Option<u16> {
    let tables = TABLES.lock();
    tables.as_ref()?.frame_of_stack(address).map(|frame| node_of(frame as usize))
}

/// Maps the memory of a device at its own address, as far as it is not mapped.
///
/// # Safety
///
/// The memory is a device's, and may be cached.
pub(super) unsafe fn map_device(memory: Range) -> Result<(), OutOfFrames> {
    let mut tables = TABLES.lock();
    let tables = tables.as_mut().ok_or(OutOfFrames)?;
    // SAFETY: no other code uses the frames; the rest is the caller's promise.
    unsafe { tables.map_device(memory, &mut || frame(0)) }
}

/// Returns the node of an address.
#[must_use]
pub fn node_of(address: usize) -> u16 {
    let address = address as u64;
    let has = |range: Range| (range.start..range.end).contains(&address);
    map().regions().iter().find(|region| has(region.range)).map_or(0, |region| region.node)
}

/// Returns the memory of a node in bytes: its size, and the part that is in no use. A heap uses all
/// of its memory, also the part that is not allocated.
#[must_use]
pub fn memory(node: u16) -> (u64, u64) {
    let left = NODES[usize::from(node)].lock().frames.left();
    (map().size(node), left)
}

/// Puts a value into memory of that node, or of another, for good. Returns `None` if no memory is
/// left.
pub fn leak_on<T>(node: u16, value: T) -> Option<&'static mut T> {
    let layout = Layout::new::<T>();
    assert!(layout.size() > 0, "a value of some size");
    let block = on_some_node(node, |node| node.allocate(layout))?.cast::<T>();
    // SAFETY: the block is new, and large and aligned enough.
    unsafe {
        block.write(value);
        Some(&mut *block.as_ptr())
    }
}

impl Node {
    fn allocate(&mut self, layout: Layout) -> Option<ptr::NonNull<u8>> {
        // SAFETY: the size of the layout is not zero, as `GlobalAlloc` requires of its callers.
        if let Some(block) = unsafe { self.heap.allocate(layout) } {
            return Some(block);
        }
        // Room for the block, its alignment and the heap's own words.
        let need = layout.size().checked_add(layout.align())? as u64 + FRAME;
        let need = need.checked_next_multiple_of(FRAME)?;
        let piece = self.frames.take(need.max(PIECE), FRAME);
        // If little is left, no more than is needed.
        let piece = piece.or_else(|| self.frames.take(need, FRAME))?;
        let base = ptr::with_exposed_provenance_mut(piece.start as usize);
        // SAFETY: the frames were taken, so no other code uses them, and they are mapped. The size
        // of the layout is not zero, as above.
        unsafe {
            self.heap.claim(base, piece.length() as usize)?;
            self.heap.allocate(layout)
        }
    }
}

// SAFETY: a block comes from the heap of a node, and goes back to that heap, which its address
// identifies.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let here = cpu::this().node.get();
        on_some_node(here, |node| node.allocate(layout))
            .map_or(ptr::null_mut(), |block| block.as_ptr())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let node = node_of(block.expose_provenance());
        // SAFETY: the block was allocated by the heap of that node, with this layout.
        unsafe { NODES[usize::from(node)].lock().heap.deallocate(block, layout) };
    }
}
