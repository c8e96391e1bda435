//! The page tables: all memory at its physical address, and a part of the address space for stacks,
//! each above pages that are not mapped.
//!
//! | addresses | mapping |
//! |---|---|
//! | 0 to 4 GiB | the same physical addresses; uncached where the map has no memory |
//! | below the boot stack | not mapped, as below other stacks |
//! | 4 GiB to the end of memory | the same, by pages of 1 GiB where the processor has them |
//! | above that | the same, only for memory of devices that is used |
//! | from [`STACKS`] on | stacks: pages that are not mapped, then [`STACK_SIZE`] bytes |
//!
//! Entries are only added, never removed: a stack whose thread has ended is reused. So no processor
//! ever has to flush a removed page.

use core::ptr;

use super::cpu::cpuid;
use crate::memory::{FRAME, Map};
use crate::pvh::Range;

/// Size of a thread's stack, in bytes.
pub const STACK_SIZE: usize = 64 << 10;
/// Distance between stacks, in bytes: guard pages and a stack. A power of two, so that an address
/// in either is easily recognised.
pub const STACK_STRIDE: usize = 128 << 10;
/// Address of the first stack: stacks have their own entry of the top table.
pub const STACKS: usize = 1 << 46;
/// Largest number of stacks.
pub const MOST_STACKS: usize = 1 << 16;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const UNCACHED: u64 = 1 << 4 | 1 << 3;
const LARGE: u64 = 1 << 7;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const MIB2: u64 = 2 << 20;
const GIB: u64 = 1 << 30;
const GIB4: u64 = 4 << 30;

type Table = [u64; 512];

/// The page tables of the kernel.
#[derive(Debug)]
pub struct Tables {
    root: *mut Table,
}

// SAFETY: the tables are only changed through this value, which a lock guards.
unsafe impl Send for Tables {}

/// Returns the end of the memory that can be used: what the processor can address, below the
/// addresses of stacks.
pub(crate) fn memory_end() -> u64 {
    // The number of bits of a physical address; 0 if the processor does not tell.
    let bits = cpuid(0x8000_0008, 0).eax & 0xff;
    let bits = if bits == 0 { 36 } else { bits };
    1_u64.checked_shl(bits).map_or(STACKS as u64, |end| end.min(STACKS as u64))
}

/// Error: no frame is left for a table or a page.
#[derive(Clone, Copy, Debug)]
pub struct OutOfFrames;

impl Tables {
    /// Creates tables that map the memory of `map`, and all of the first 4 GiB but the small pages
    /// in
    /// `hole`, which is below that.
    ///
    /// # Safety
    ///
    /// `frame` returns frames that are mapped at their physical addresses now, and that no other
    /// code uses.
    pub unsafe fn new(
        map: &Map,
        hole: Range,
        frame: &mut impl FnMut() -> Option<u64>,
    ) -> Result<Self, OutOfFrames> {
        let has_gib_pages = cpuid(0x8000_0001, 0).edx & 1 << 26 != 0;
        // SAFETY: the caller's promise, here and below.
        let root = unsafe { fresh(frame)? };
        let mut tables = Self { root };
        let mut at = 0;
        while at < GIB4.max(map.end()) {
            let huge = Range { start: at, end: at + GIB };
            if at >= GIB4 && has_gib_pages {
                // SAFETY: the caller's promise; memory and devices are mapped at their physical
                // addresses.
                unsafe { tables.map(at, at | WRITABLE | LARGE, 3, frame)? };
                at += GIB;
                continue;
            }
            for start in (huge.start..huge.end).step_by(MIB2 as usize) {
                let page = Range { start, end: start + MIB2 };
                let is_memory =
                    map.regions().iter().any(|region| region.range.common(page).length() > 0);
                // The first megabyte has memory that the map leaves out.
                let is_image = hole.common(page).length() > 0;
                let flags = if is_memory || is_image || start == 0 { 0 } else { UNCACHED };
                if is_image {
                    for small in (page.start..page.end).step_by(FRAME as usize) {
                        if !(hole.start..hole.end).contains(&small) {
                            // SAFETY: as below.
                            unsafe { tables.map(small, small | WRITABLE | flags, 1, frame)? };
                        }
                    }
                    continue;
                }
                // SAFETY: the caller's promise; memory and devices are mapped at their physical
                // addresses.
                unsafe { tables.map(start, start | WRITABLE | LARGE | flags, 2, frame)? };
            }
            at += GIB;
        }
        Ok(tables)
    }

    /// Returns the physical address of the root table.
    #[must_use]
    pub fn root(&self) -> u64 {
        self.root.expose_provenance() as u64
    }

    /// Maps the pages of the stack at `index`, and returns the addresses of its ends. Its pages
    /// come from `frame`. If there are too few, they go to `give_back`, and none is mapped.
    ///
    /// # Safety
    ///
    /// See [`new`](Self::new); and the stack was not mapped before.
    pub unsafe fn map_stack(
        &mut self,
        index: usize,
        frame: &mut impl FnMut() -> Option<u64>,
        give_back: &mut impl FnMut(u64),
    ) -> Result<(usize, usize), OutOfFrames> {
        if index >= MOST_STACKS {
            return Err(OutOfFrames);
        }
        let top = STACKS + (index + 1) * STACK_STRIDE;
        let low = top - STACK_SIZE;
        let mut frames = [0; STACK_SIZE / FRAME as usize];
        let taken = frames.iter_mut().map_while(|place| frame().map(|it| *place = it)).count();
        // The pages of a stack are in one table, because stacks begin at multiples of their size.
        let table = if taken == frames.len() {
            // SAFETY: the caller's promise.
            unsafe { self.table(low as u64, 1, frame) }
        } else {
            Err(OutOfFrames)
        };
        match table {
            Ok(table) => {
                for (page, physical) in (low..top).step_by(FRAME as usize).zip(frames) {
                    // SAFETY: tables are mapped frames, and only this value changes them.
                    unsafe { (*table)[place(page as u64, 1)] = physical | WRITABLE | PRESENT };
                }
                Ok((low, top))
            }
            Err(error) => {
                frames[..taken].iter().for_each(|&frame| give_back(frame));
                Err(error)
            }
        }
    }

    /// Returns the frame at an address of a stack; `None` if no stack is mapped there.
    #[must_use]
    pub fn frame_of_stack(&self, address: usize) -> Option<u64> {
        if !(STACKS..STACKS + MOST_STACKS * STACK_STRIDE).contains(&address) {
            return None;
        }
        let mut entry = self.root();
        for level in (1..=4).rev() {
            let table = ptr::with_exposed_provenance::<Table>((entry & ADDRESS) as usize);
            // SAFETY: tables are frames from `fresh`, mapped at their physical addresses; stacks
            // have no large pages.
            entry = unsafe { (*table)[place(address as u64, level)] };
            if entry & PRESENT == 0 {
                return None;
            }
        }
        Some(entry & ADDRESS)
    }

    /// Maps the memory of a device at its own address, as far as it is not mapped.
    ///
    /// # Safety
    ///
    /// See [`new`](Self::new); and the memory is a device's, which may be cached.
    pub unsafe fn map_device(
        &mut self,
        memory: Range,
        frame: &mut impl FnMut() -> Option<u64>,
    ) -> Result<(), OutOfFrames> {
        if memory.end > STACKS as u64 {
            return Err(OutOfFrames);
        }
        for at in (memory.start / MIB2 * MIB2..memory.end).step_by(MIB2 as usize) {
            if !self.is_mapped(at) {
                // SAFETY: the caller's promise.
                unsafe { self.map(at, at | WRITABLE | LARGE, 2, frame)? };
            }
        }
        Ok(())
    }

    /// Returns whether the page of 2 MiB at an address is mapped, by itself or in a larger one.
    fn is_mapped(&self, address: u64) -> bool {
        let mut table = self.root;
        for level in (2..=4).rev() {
            // SAFETY: tables are frames that `fresh` has made, and mapped at their own addresses.
            let next = unsafe { (*table)[place(address, level)] };
            if next & PRESENT == 0 || next & LARGE != 0 {
                return next & PRESENT != 0;
            }
            table = ptr::with_exposed_provenance_mut((next & ADDRESS) as usize);
        }
        // A table of small pages, which only stacks and the image have.
        true
    }

    /// Writes the entry for an address in the table of this level; level 1 has the small pages.
    ///
    /// # Safety
    ///
    /// See `new`; and code may access the memory by that address.
    unsafe fn map(
        &mut self,
        address: u64,
        entry: u64,
        level: u32,
        frame: &mut impl FnMut() -> Option<u64>,
    ) -> Result<(), OutOfFrames> {
        // SAFETY: the caller's promise.
        let table = unsafe { self.table(address, level, frame)? };
        // SAFETY: tables are mapped frames, and only this value changes them.
        unsafe { (*table)[place(address, level)] = entry | PRESENT };
        Ok(())
    }

    /// Returns the table of this level for an address; makes it, and those above it, if they do not
    /// exist.
    ///
    /// # Safety
    ///
    /// See `new`.
    unsafe fn table(
        &mut self,
        address: u64,
        level: u32,
        frame: &mut impl FnMut() -> Option<u64>,
    ) -> Result<*mut Table, OutOfFrames> {
        let mut table = self.root;
        for above in (level + 1..=4).rev() {
            let index = place(address, above);
            // SAFETY: tables are frames from `fresh`, which are mapped at their physical addresses.
            let next = unsafe { (*table)[index] };
            table = if next & PRESENT != 0 {
                ptr::with_exposed_provenance_mut((next & ADDRESS) as usize)
            } else {
                // SAFETY: the caller's promise.
                let made = unsafe { fresh(frame)? };
                // SAFETY: tables are mapped frames, and only this value changes them.
                unsafe {
                    (*table)[index] = made.expose_provenance() as u64 | WRITABLE | PRESENT;
                }
                made
            };
        }
        Ok(table)
    }
}

/// Creates a table without entries.
///
/// # Safety
///
/// See [`Tables::new`].
unsafe fn fresh(frame: &mut impl FnMut() -> Option<u64>) -> Result<*mut Table, OutOfFrames> {
    let frame = frame().ok_or(OutOfFrames)?;
    let table = ptr::with_exposed_provenance_mut::<Table>(frame as usize);
    // SAFETY: the caller's promise.
    unsafe { table.write([0; 512]) };
    Ok(table)
}

fn place(address: u64, level: u32) -> usize {
    (address >> (12 + 9 * (level - 1)) & 511) as usize
}

/// Makes this processor use the tables.
///
/// # Safety
///
/// They map the running code, its stack, and all memory that it accesses.
pub unsafe fn load(root: u64) {
    // SAFETY: the caller's promise.
    unsafe { core::arch::asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) };
}
