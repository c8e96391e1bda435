//! Anonymous memory directly from the kernel: address space is reserved, and opened piece by piece.
//!
//! A reservation has no access rights, so it costs only address space: it is not charged where
//! overcommit is off (`vm.overcommit_memory=2`), and `mlockall` does not fill it. Opening a piece
//! makes it readable and writable; the kernel supplies zeroes when it is first touched.
//!
//! A guard is a page whose access raises `SIGSEGV`. A guard that was never opened, or was shut, is
//! a separate mapping, and a process can have 65 530 mappings by default (`vm.max_map_count`). A
//! marker in the page table needs no mapping.

use core::ffi::c_void;
use core::ptr::with_exposed_provenance_mut;

use crate::sys::{self, Errno};

/// `MADV_GUARD_INSTALL` from `include/uapi/asm-generic/mman-common.h` of Linux 6.13.
const MARK: libc::c_int = 102;

/// The size of a page, in bytes.
pub(crate) fn size() -> usize {
    // SAFETY: takes only a number, which is always known.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Reserves `length` bytes of address space. Returns `None` if there is not enough, or the kernel
/// refuses.
pub(crate) fn reserve(length: usize) -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let rights = libc::PROT_NONE as usize;
    // No file. Not by the function `mmap`, which a program may have replaced by one that allocates.
    let args = [0, length, rights, flags as usize, usize::MAX, 0];
    // SAFETY: a new mapping at an address of the kernel's choice affects no memory in use.
    let at = unsafe { sys::call(libc::SYS_mmap, args) }.ok()?;
    Some(with_exposed_provenance_mut(at))
}

/// Makes the kernel zero these pages in the child of a fork. Returns whether the kernel agreed.
pub(crate) fn wipe_on_fork(at: *mut c_void, length: usize) -> bool {
    advise(at, length, libc::MADV_WIPEONFORK)
}

/// Leaves these pages out of core dumps, where the kernel can.
pub(crate) fn leave_out_of_dumps(at: *mut c_void, length: usize) {
    advise(at, length, libc::MADV_DONTDUMP);
}

/// Makes a reserved piece readable and writable. Returns whether that worked. Harmless if it
/// already is.
pub(crate) fn open(at: *mut c_void, length: usize) -> bool {
    let rights = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: callers pass a piece of their own reservation; rights are added, never taken.
    unsafe { sys::call(libc::SYS_mprotect, [at as usize, length, rights]) }.is_ok()
}

/// Takes all rights from an opened piece that no thread uses. Returns whether that worked.
pub(crate) fn shut(at: *mut c_void, length: usize) -> bool {
    let rights = libc::PROT_NONE as usize;
    // SAFETY: callers pass a piece of their own reservation that holds nothing yet.
    unsafe { sys::call(libc::SYS_mprotect, [at as usize, length, rights]) }.is_ok()
}

/// Never makes these pages part of a huge one, which is resident as a whole once it is touched.
/// Kernels without huge pages refuse; that error does not matter.
pub(crate) fn keep_small(at: *mut c_void, length: usize) {
    advise(at, length, libc::MADV_NOHUGEPAGE);
}

/// Makes these pages guards, open or not, by markers (Linux 6.13). Returns whether the kernel took
/// the advice; it does not for locked memory. Opening the pages later does not remove a marker.
pub(crate) fn mark(at: *mut c_void, length: usize) -> bool {
    advise(at, length, MARK)
}

/// Returns whether an opened page is a guard. Needed because emulators accept advice that they do
/// not know.
pub(crate) fn is_guard(at: *mut c_void, length: usize) -> bool {
    // SAFETY: callers pass their own reservation; a page that is not a guard is only populated.
    let read = unsafe {
        sys::call(libc::SYS_madvise, [at as usize, length, libc::MADV_POPULATE_READ as usize])
    };
    read == Err(Errno(libc::EFAULT))
}

/// Gives the memory of these pages back at once; they hold zeroes afterwards, and guards among them
/// stay. Returns whether the kernel took it, which it does not for locked memory.
pub(crate) fn discard(at: *mut c_void, length: usize) -> bool {
    advise(at, length, libc::MADV_DONTNEED)
}

/// Gives back a whole reservation that no thread uses.
pub(crate) fn unmap(at: *mut c_void, length: usize) {
    // SAFETY: callers pass a reservation that they never published, or of which they are the last
    // user. A refusal only leaks address space.
    let _ = unsafe { sys::call(libc::SYS_munmap, [at as usize, length]) };
}

fn advise(at: *mut c_void, length: usize, advice: libc::c_int) -> bool {
    // SAFETY: callers pass their own reservation; only `mark` and `discard` change its content, and
    // they are for pages that no thread uses.
    unsafe { sys::call(libc::SYS_madvise, [at as usize, length, advice as usize]) }.is_ok()
}
