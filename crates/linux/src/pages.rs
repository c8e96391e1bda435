//! Anonymous memory straight from the kernel: reserved, opened piece by piece.
//!
//! A reservation has no access rights, so it costs address space alone: it is not charged where
//! overcommit is off (`vm.overcommit_memory=2`) and `mlockall` does not fill it. Opening a piece
//! makes it readable and writable; the kernel supplies zeroes when it is first touched.
//!
//! A guard is a page whose touch is a `SIGSEGV`. One that was never opened, or was shut, is a
//! mapping of its own, of which a process has 65 530 by default (`vm.max_map_count`). A marker in
//! the page table is none.

use core::ffi::c_void;
use core::ptr::with_exposed_provenance_mut;

use crate::sys::{self, Errno};

/// `MADV_GUARD_INSTALL`, of `include/uapi/asm-generic/mman-common.h` in Linux 6.13.
const MARK: libc::c_int = 102;

/// Bytes of a page.
pub(crate) fn size() -> usize {
    // SAFETY: takes a number, and knows this one.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// Reserves `length` bytes of address space. `None` if there is not as much, or it is not allowed.
pub(crate) fn reserve(length: usize) -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let rights = libc::PROT_NONE as usize;
    // No file. Not by `mmap`, which a program may have replaced by one that allocates.
    let args = [0, length, rights, flags as usize, usize::MAX, 0];
    // SAFETY: a new mapping wherever the kernel likes: touches no memory that is in use.
    let at = unsafe { sys::call(libc::SYS_mmap, args) }.ok()?;
    Some(with_exposed_provenance_mut(at))
}

/// Makes the kernel zero these pages in the child of a fork. Says whether it will.
pub(crate) fn wipe_on_fork(at: *mut c_void, length: usize) -> bool {
    advise(at, length, libc::MADV_WIPEONFORK)
}

/// Leaves these pages out of core dumps, where the kernel can.
pub(crate) fn leave_out_of_dumps(at: *mut c_void, length: usize) {
    advise(at, length, libc::MADV_DONTDUMP);
}

/// Makes a reserved piece readable and writable. Says whether that worked. Harmless if it was.
pub(crate) fn open(at: *mut c_void, length: usize) -> bool {
    let rights = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: callers pass a piece of their own reservation; rights are added, never taken.
    unsafe { sys::call(libc::SYS_mprotect, [at as usize, length, rights]) }.is_ok()
}

/// Takes all rights from an opened piece, which no thread uses. Says whether that worked.
pub(crate) fn shut(at: *mut c_void, length: usize) -> bool {
    let rights = libc::PROT_NONE as usize;
    // SAFETY: callers pass a piece of their own reservation, in which there is nothing yet.
    unsafe { sys::call(libc::SYS_mprotect, [at as usize, length, rights]) }.is_ok()
}

/// Never makes these pages part of a huge one, which is resident as a whole once it is touched.
/// Kernels without huge pages refuse; that error does not matter.
pub(crate) fn keep_small(at: *mut c_void, length: usize) {
    advise(at, length, libc::MADV_NOHUGEPAGE);
}

/// Makes guards of these pages, open or not, by markers (Linux 6.13). Says whether the kernel took
/// the advice; it does not for locked memory. Opening the pages later does not take a marker away.
pub(crate) fn mark(at: *mut c_void, length: usize) -> bool {
    advise(at, length, MARK)
}

/// Whether an opened page is a guard. Emulators say yes to advice that they do not know.
pub(crate) fn is_guard(at: *mut c_void, length: usize) -> bool {
    // SAFETY: callers pass their own reservation; a page that is no guard is read, as zeroes.
    let read = unsafe {
        sys::call(libc::SYS_madvise, [at as usize, length, libc::MADV_POPULATE_READ as usize])
    };
    read == Err(Errno(libc::EFAULT))
}

/// Gives the memory of these pages back, now; they hold zeroes afterwards, and guards among them
/// stay. Says whether the kernel took it; locked memory it does not.
pub(crate) fn discard(at: *mut c_void, length: usize) -> bool {
    advise(at, length, libc::MADV_DONTNEED)
}

/// Gives back a whole reservation that no thread uses.
pub(crate) fn unmap(at: *mut c_void, length: usize) {
    // SAFETY: callers pass a reservation that they never published, or of which they are the last.
    // A refusal leaks address space.
    let _ = unsafe { sys::call(libc::SYS_munmap, [at as usize, length]) };
}

fn advise(at: *mut c_void, length: usize, advice: libc::c_int) -> bool {
    // SAFETY: callers pass their own reservation; only `mark` and `discard` change what it holds,
    // and are for pages that no thread uses.
    unsafe { sys::call(libc::SYS_madvise, [at as usize, length, advice as usize]) }.is_ok()
}
