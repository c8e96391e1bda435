//! Anonymous memory straight from the kernel: reserved, opened piece by piece, never freed.
//!
//! A reservation has no access rights, so it costs address space alone: it is not charged where
//! overcommit is off (`vm.overcommit_memory=2`) and `mlockall` does not fill it. Opening a piece
//! makes it readable and writable; the kernel supplies zeroes when it is first touched.

use core::ffi::c_void;
use core::ptr::null_mut;

use crate::sys;

/// Reserves `length` bytes of address space. `None` if there are not so many, or it is not allowed.
pub(crate) fn reserve(length: usize) -> Option<*mut c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let at = sys::errno_kept(|| {
        // SAFETY: a new mapping wherever the kernel likes: touches no memory that is in use.
        unsafe { libc::mmap(null_mut(), length, libc::PROT_NONE, flags, -1, 0) }
    });
    (at != libc::MAP_FAILED).then_some(at)
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

/// Gives back a whole reservation of which nobody else knows.
pub(crate) fn unmap(at: *mut c_void, length: usize) {
    // SAFETY: callers pass a reservation that they never published. A refusal leaks address space.
    let _ = unsafe { sys::call(libc::SYS_munmap, [at as usize, length]) };
}

fn advise(at: *mut c_void, length: usize, advice: libc::c_int) -> bool {
    // SAFETY: callers pass their own reservation; neither advice changes what it holds now.
    unsafe { sys::call(libc::SYS_madvise, [at as usize, length, advice as usize]) }.is_ok()
}
