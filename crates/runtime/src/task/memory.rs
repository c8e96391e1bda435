//! The memory of tasks: by default, an allocation for each.

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
    /// A place for a task of this layout, the size of which is not 0.
    fn allocate(layout: Layout) -> NonNull<u8>;

    /// Frees the place of a task, on any thread.
    ///
    /// # Safety
    ///
    /// The place is of `allocate` with this layout, and no thread has it any more.
    unsafe fn free(place: NonNull<u8>, layout: Layout);
}

/// The global allocator.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

// SAFETY: the allocator's promise.
unsafe impl Memory for Heap {
    fn allocate(layout: Layout) -> NonNull<u8> {
        // SAFETY: a size that is not 0: the caller's.
        let place = NonNull::new(unsafe { alloc(layout) });
        place.unwrap_or_else(|| handle_alloc_error(layout))
    }

    unsafe fn free(place: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { dealloc(place.as_ptr(), layout) };
    }
}
