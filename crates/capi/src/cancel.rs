//! Calls in which the calling thread is not cancelled.

use core::ffi::c_int;
use core::ptr;

// SAFETY: as <pthread.h> declares it.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// glibc's `PTHREAD_CANCEL_DISABLE`, which `libc` does not define.
const DISABLE: c_int = 1;

/// Runs `does`, which may call the C library's `open`, `close`, `pthread_join`, or the caller's
/// code: a cancellation there would unwind Rust, so it is deferred.
pub(crate) fn uncancelled<T>(does: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: a valid state, and memory for one.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let done = does();
    // SAFETY: the former state; null, because the current one is not needed.
    unsafe { pthread_setcancelstate(before, ptr::null_mut()) };
    done
}
