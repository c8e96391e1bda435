//! Error numbers and deadlines of the C interface.

use core::ffi::c_int;
use core::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::Refused;

/// Returns 0 if it was `done`, otherwise the error.
pub(crate) fn unless(done: bool, error: c_int) -> c_int {
    if done { 0 } else { error }
}

/// Writes a value to the caller's memory; returns `EINVAL` if that is not aligned for it.
///
/// # Safety
///
/// `at` is memory for one value.
pub(crate) unsafe fn make<T>(at: *mut T, value: T) -> c_int {
    let aligned = at.is_aligned();
    if aligned {
        // SAFETY: the caller's promise, and aligned.
        unsafe { at.write(value) }
    }
    unless(aligned, libc::EINVAL)
}

/// Returns the code of a read lock: `busy` if it was not acquired.
pub(crate) fn read(had: Result<(), Refused>, busy: c_int) -> c_int {
    match had {
        Ok(()) => 0,
        Err(Refused::Busy) => busy,
        Err(Refused::TooManyReaders) => libc::EAGAIN,
    }
}

/// Calls `attempt` with the deadline `until` of the clock. Returns its code, or `EINVAL` for an
/// invalid time.
///
/// A time before the clock's zero has passed, and one beyond the year 2554 never comes.
pub(crate) fn timed(
    clock: c_int,
    until: &libc::timespec,
    attempt: impl FnOnce(Deadline) -> c_int,
) -> c_int {
    let clock = match clock {
        libc::CLOCK_REALTIME => Clock::Realtime,
        libc::CLOCK_MONOTONIC => Clock::Monotonic,
        _ => return libc::EINVAL,
    };
    let Some(fraction) = u64::try_from(until.tv_nsec).ok().filter(|&ns| ns < 1_000_000_000) else {
        return libc::EINVAL;
    };
    let ns = match u64::try_from(until.tv_sec) {
        Ok(seconds) => seconds.saturating_mul(1_000_000_000).saturating_add(fraction),
        Err(_) => 0,
    };
    attempt(Deadline { clock, ns })
}

/// Returns the time from now until the deadline.
pub(crate) fn left(deadline: Deadline) -> Duration {
    Duration::from_nanos(deadline.ns.saturating_sub(Linux::now(deadline.clock)))
}
