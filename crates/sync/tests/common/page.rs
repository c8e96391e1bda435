//! A page of memory that can be taken away under a lock: a thread that touches it too late crashes.

use std::ptr;

const BYTES: usize = 4096;

/// A page that its owner may unmap at any time.
#[derive(Clone, Copy)]
pub struct Page(usize);

impl Page {
    /// Maps a fresh page, all zero.
    pub fn map() -> Self {
        // SAFETY: maps a fresh anonymous page.
        let page = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED);
        Self(page as usize)
    }

    /// Writes `value` to the beginning of the page.
    ///
    /// # Safety
    ///
    /// The value fits in the page, and no thread uses the page yet.
    pub unsafe fn write<T>(self, value: T) {
        // SAFETY: the caller's promise; a page is aligned for any type.
        unsafe { (self.0 as *mut T).write(value) }
    }

    /// Returns the value at the beginning of the page.
    ///
    /// # Safety
    ///
    /// All bytes zero are a valid `T`, it fits in the page, and is used only until the page is
    /// unmapped.
    pub unsafe fn as_ref<'a, T>(self) -> &'a T {
        // SAFETY: the caller's promise.
        unsafe { &*(self.0 as *const T) }
    }

    /// Unmaps the page.
    ///
    /// # Safety
    ///
    /// No thread accesses the page any more.
    pub unsafe fn unmap(self) {
        // SAFETY: mapped in `map`; the caller's promise.
        assert_eq!(unsafe { libc::munmap(self.0 as *mut _, BYTES) }, 0);
    }
}
