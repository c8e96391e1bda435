//! Tells a process from its children: a page that the kernel empties in the child of a fork.
//!
//! The number of a process is not enough: it costs a system call, and a child in another name space
//! may have that of its parent.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::layout::PAGE_BYTES;

/// The mark of the process that has made it.
#[derive(Debug)]
pub(crate) struct Mark(NonNull<AtomicU32>);

// SAFETY: the page is an atomic, and stays mapped until `Mark` is dropped.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

impl Mark {
    /// Marks the calling process.
    ///
    /// # Errors
    ///
    /// Too much is mapped, or the kernel does not empty pages at forks (Linux before 4.14, or a
    /// filter).
    pub(crate) fn new() -> io::Result<Self> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: maps a new range, whose address the kernel chooses.
        let at = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mark = Self(NonNull::new(at.cast()).ok_or_else(io::Error::last_os_error)?);
        // SAFETY: the range was mapped above.
        if unsafe { libc::madvise(at, PAGE_BYTES, libc::MADV_WIPEONFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // Relaxed, also below: the mark says nothing about other memory.
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// Returns whether the calling process is the one that was marked. No system call.
    pub(crate) fn is_own(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 1
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: mapped until `self` is dropped, in a child, too, and aligned to a page.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: mapped in this process, or in the one that it is a child of. Borrows of `self`
        // have ended. It fails only for a range that is not mapped.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_does_not_have_the_mark_of_its_parent() {
        let mark = Mark::new().expect("a page");
        assert!(mark.is_own());
        // SAFETY: the child only loads an atomic and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: ends the child, without the parent's handlers.
            unsafe { libc::_exit(i32::from(mark.is_own())) };
        }
        assert!(child > 0, "{}", io::Error::last_os_error());
        let mut status = 0;
        // SAFETY: waits for the child, and writes a number.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child takes itself for its parent");
        assert!(mark.is_own());
    }
}
