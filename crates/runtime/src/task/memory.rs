//! The memory of tasks: by default, one allocation each.

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use core::alloc::Layout;
use core::ptr::NonNull;

/// Memory for tasks.
///
/// # Safety
///
/// Memory that `allocate` returns has the size and alignment of its layout, and has one owner until
/// it is freed.
pub unsafe trait Memory: 'static {
    /// Returns a place for a task of this layout, whose size is not 0.
    fn allocate(layout: Layout) -> NonNull<u8>;

    /// Frees the place of a task, on any thread.
    ///
    /// # Safety
    ///
    /// The place was returned by `allocate` with this layout, and no thread uses it any more.
    unsafe fn free(place: NonNull<u8>, layout: Layout);
}

/// The global allocator.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

// SAFETY: the allocator's contract.
unsafe impl Memory for Heap {
    fn allocate(layout: Layout) -> NonNull<u8> {
        // SAFETY: the size is not 0, by the caller's contract.
        let place = NonNull::new(unsafe { alloc(layout) });
        place.unwrap_or_else(|| handle_alloc_error(layout))
    }

    unsafe fn free(place: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { dealloc(place.as_ptr(), layout) };
    }
}
