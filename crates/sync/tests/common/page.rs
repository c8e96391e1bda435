//! A page of memory that can be taken away under a lock: a thread that touches it too late crashes.

use std::ptr;

const BYTES: usize = 4096;

/// A page that its owner unmaps when it likes.
#[derive(Clone, Copy)]
pub struct Page(usize);

impl Page {
    /// A fresh page, all zero.
    pub fn map() -> Self {
        // SAFETY: a fresh anonymous page.
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

    /// Puts `value` at its beginning.
    ///
    /// # Safety
    ///
    /// It fits in the page, and no thread uses that yet.
    pub unsafe fn write<T>(self, value: T) {
        // SAFETY: the caller's promise; a page is aligned for anything.
        unsafe { (self.0 as *mut T).write(value) }
    }

    /// The value at its beginning.
    ///
    /// # Safety
    ///
    /// A `T` of zeros is a `T` and fits in the page, and is used only until it is unmapped.
    pub unsafe fn as_ref<'a, T>(self) -> &'a T {
        // SAFETY: the caller's promise.
        unsafe { &*(self.0 as *const T) }
    }

    /// Takes it away.
    ///
    /// # Safety
    ///
    /// No thread has a reason to touch it any more.
    pub unsafe fn unmap(self) {
        // SAFETY: mapped in `map`; the caller's promise.
        assert_eq!(unsafe { libc::munmap(self.0 as *mut _, BYTES) }, 0);
    }
}
