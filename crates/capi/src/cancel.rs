//! Calls in which the calling thread is not cancelled.

use core::ffi::c_int;
use core::ptr;

// SAFETY: as <pthread.h> declares it.
unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// glibc's `PTHREAD_CANCEL_DISABLE`, which is no constant of `libc`.
const DISABLE: c_int = 1;

/// Does something by the C library's `open`, `close`, `pthread_join`, or code of the caller's: a
/// cancellation there would unwind Rust. It is put off.
pub(crate) fn uncancelled<T>(does: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: a state, and memory for one.
    unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
    let done = does();
    // SAFETY: the state from before; null: that of now is not wanted.
    unsafe { pthread_setcancelstate(before, ptr::null_mut()) };
    done
}
