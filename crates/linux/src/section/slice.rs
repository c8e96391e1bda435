//! The kernel's time-slice extension (Linux 7.0, `CONFIG_RSEQ_SLICE_EXTENSION`).
//!
//! A thread asks for it by a byte of its rseq area. If the kernel is about to preempt the thread in
//! an interrupt and finds the byte set, it clears it, sets the next one and lets the thread go on,
//! for 5 µs by default. A thread that finds the second byte set at the end of its section gives the
//! CPU back by a system call that does nothing else; any other system call does so, too, and
//! whatever the thread does, a timer ends the grant. A switch away from the thread clears both.
//!
//! The kernel offers this only to threads whose registered area is longer than the first 32 bytes,
//! which glibc does since 2.41, if the kernel's features need it. For such areas it checks that
//! the fields which it fills were not written to, and kills the process otherwise: this file reads
//! one of these, and writes none.
//!
//! SLICE-1: the area is read and written only in a thread for which the kernel has said that this
//! area is the registered one. Otherwise another area is in use, an allocator's for example; or the
//! thread was made by a raw `clone`, and there may be no memory at all where the area would be.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, compiler_fence};

use crate::{rseq, sys};

/// The kernel's numbers: of the option, its operation and its value (`linux/prctl.h`), and of the
/// system call that gives a grant back.
const OPTION: usize = 79;
const SET: usize = 2;
const ENABLE: usize = 1;
const YIELD: libc::c_long = 471;

/// The flags by which the kernel says that a thread may ask, and that it may do so now.
const AVAILABLE: u32 = 1 << 4;
const ENABLED: u32 = 1 << 5;

/// An rseq area, as far as this file needs it (`struct rseq` of `linux/rseq.h`).
#[derive(Debug, Default)]
#[repr(C)]
struct Area {
    before: [AtomicU32; 4],
    flags: AtomicU32,
    between: [AtomicU32; 2],
    request: AtomicU8,
    granted: AtomicU8,
}

const _: () = {
    assert!(core::mem::offset_of!(Area, flags) == 16);
    assert!(core::mem::offset_of!(Area, request) == 28);
    assert!(core::mem::offset_of!(Area, granted) == 29);
};

/// Whether glibc has areas.
static FOUND: AtomicBool = AtomicBool::new(false);

/// Finds the areas. Uses the dynamic linker, so it must not be called on a lock's path.
pub(super) fn find() {
    // Release: the location of the areas; pairs with the acquire in `enable`.
    FOUND.store(rseq::find().is_ok(), Release);
}

/// Enables the extension for the calling thread. Returns whether it may ask from now on.
pub(super) fn enable() -> bool {
    // Acquire: pairs with the release in `find`. SLICE-1: the kernel is asked before the area is
    // read.
    if !FOUND.load(Acquire) || !rseq::registered() || !has(AVAILABLE) {
        return false;
    }
    // SAFETY: changes one property of the calling thread, and has no pointer.
    let enabled = unsafe { sys::call(libc::SYS_prctl, [OPTION, SET, ENABLE, 0, 0]) };
    enabled.is_ok() && has(ENABLED)
}

fn has(flag: u32) -> bool {
    area().flags.load(Relaxed) & flag != 0
}

/// The calling thread's area. Only in a thread whose area is registered (SLICE-1).
fn area() -> &'static Area {
    // SAFETY: the registered area of this thread has 32 bytes at least, aligned to 32, and lives as
    // long as the thread. All fields are atomics, as the kernel writes to them.
    unsafe { &*core::ptr::with_exposed_provenance(rseq::area()) }
}

/// Asks for an extension, if the thread is to be preempted.
#[inline]
pub(super) fn begin() {
    ask_in(area());
}

/// Asks no longer.
#[inline]
pub(super) fn end() {
    area().request.store(0, Relaxed);
}

/// Gives the CPU back if an extension was granted.
#[inline]
pub(super) fn released() {
    if is_granted_in(area()) {
        give_back();
    }
}

#[inline]
fn ask_in(area: &Area) {
    area.request.store(1, Relaxed);
    // The section stays behind the store, for the kernel, which looks in interrupts of this thread.
    compiler_fence(SeqCst);
}

#[inline]
fn is_granted_in(area: &Area) -> bool {
    compiler_fence(SeqCst);
    area.granted.load(Relaxed) != 0
}

#[cold]
#[inline(never)]
fn give_back() {
    // SAFETY: has no arguments. If it is refused, the kernel has taken the CPU at the call, or does
    // so by its timer.
    let _ = unsafe { sys::call(YIELD, []) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's part, by hand: a simulated area.
    #[test]
    fn an_extension_is_asked_for_granted_and_seen() {
        let area = Area::default();
        ask_in(&area);
        assert!(area.request.load(Relaxed) == 1 && !is_granted_in(&area));
        area.request.store(0, Relaxed);
        area.granted.store(1, Relaxed);
        assert!(is_granted_in(&area));
    }

    #[test]
    fn a_thread_without_the_extension_is_not_told_that_it_has_it() {
        find();
        if FOUND.load(Relaxed) && rseq::registered() && !has(AVAILABLE) {
            assert!(!enable());
        }
        // A call on a kernel without it has no effect.
        give_back();
    }

    /// SLICE-1, in a child of its own, which would be killed.
    #[test]
    fn an_area_that_is_not_registered_is_not_read() {
        find();
        if !FOUND.load(Relaxed) {
            return;
        }
        // SAFETY: the child makes system calls only, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            rseq::misplace();
            let enabled = enable();
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(i32::from(enabled)) };
        }
        assert!(child > 0);
        let mut status = -1;
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "neither killed nor enabled");
    }
}
