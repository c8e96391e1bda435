//! Filters of system calls: the calls that a process avoids once a filter is in force.
//!
//! A program that installs a filter allows the calls that it needs itself. Its locks need only the
//! futex, but make more calls where these are available: for the thread's id, for crowding, for the
//! memory of more waiters. A filter may answer such a call by killing the process, and there is no
//! way to find out without a call.
//!
//! So a caller that is about to install a filter announces it first
//! ([`expect_filter`](crate::expect_filter)). That prepares everything needed (`expect.rs`). From
//! then on **every** call of this crate is refused here, before the kernel could refuse it, except
//! those that a wait can't do without ([`crate::sys`]). The whole crate works without the refused
//! calls; its README says how for each facility.
//!
//! | call | substitute |
//! |---|---|
//! | `gettid` | a function of the caller of `expect_filter`, without a system call |
//! | `sched_yield` | a sleep of 50 µs on a futex |
//! | `mmap`, `mprotect`: more nodes | 4096 more are opened in advance; then waits without nodes |
//! | `tkill`: has it ended? | no; threads that end give their nodes back (`end_thread`) |
//! | `membarrier`, `rseq` | as where they are missing: see [`crate::light`] |
//! | `getrusage`, `sched_getaffinity`, files | the last known values |
//!
//! Other threads may be about to make a call at that very moment. So calls are counted while they
//! are made ([`optional`]), and `expect_filter` returns when all calls have returned that did not
//! see the filter:
//!
//! - FILTER-1: a thread counts itself and then reads `IN_FORCE`; the installer sets `IN_FORCE` and
//!   then reads the counts. All four accesses are sequentially consistent, so one of the two sees
//!   the other.
//!
//! A filter that was in force when the process began is not detected: then all calls are made as
//! usual.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use crate::local;

static IN_FORCE: AtomicBool = AtomicBool::new(false);

/// The number of threads inside a call. Each counter has its own cache line, so that threads that
/// yield all the time do not contend for one line.
#[repr(align(64))]
struct Calls(AtomicU32);
const LINES: usize = 16;
static CALLS: [Calls; LINES] = [const { Calls(AtomicU32::new(0)) }; LINES];
/// The function that returns the calling thread's id without a system call; written before
/// `IN_FORCE`.
static ID: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Returns whether a filter of system calls is in force, or is about to be: then `futex` is the
/// only system call that may be made. A load and a branch.
#[inline]
#[must_use]
pub fn filtered() -> bool {
    // Acquire: `ID`; pairs with the release in `put_in_force`.
    IN_FORCE.load(Acquire)
}

/// Makes an optional system call; returns `None` without calling where a filter is in force.
#[doc(hidden)]
#[inline]
pub fn optional<R>(call: impl FnOnce() -> R) -> Option<R> {
    let calls = local::with(|thread| {
        // The states of two threads are far apart, so their addresses spread over the counters.
        let at = core::ptr::from_ref(thread).addr();
        &CALLS[(at >> 12 ^ at >> 20) % LINES].0
    });
    // FILTER-1. SeqCst: with the store of `put_in_force` and the loads of `is_calling`.
    calls.fetch_add(1, SeqCst);
    let result = if IN_FORCE.load(SeqCst) { None } else { Some(call()) };
    // Release: the call has returned; pairs with the loads in `is_calling`.
    calls.fetch_sub(1, Release);
    result
}

/// Resets the counts in the child of a fork: threads that were inside a call do not exist here.
pub fn forked() {
    // Relaxed: there is no other thread.
    CALLS.iter().for_each(|calls| calls.0.store(0, Relaxed));
}

/// The id of the calling thread, for use while a filter is in force; makes no system call.
pub(crate) fn id() -> u32 {
    let id = ID.load(Relaxed);
    if id.is_null() {
        return 1;
    }
    // SAFETY: `put_in_force` has stored a function of that type.
    let id = unsafe { core::mem::transmute::<*mut (), fn() -> u32>(id) };
    id()
}

/// Puts a filter in force for good. `id` returns the calling thread's id without a system call.
pub(crate) fn put_in_force(id: fn() -> u32) {
    // Relaxed: published by the store of `IN_FORCE` below.
    ID.store(id as *mut (), Relaxed);
    // FILTER-1. Release: pairs with the acquire in `filtered`; SeqCst: with `optional`.
    IN_FORCE.store(true, SeqCst);
}

/// Returns whether a thread is inside a call that may not have seen the filter.
pub(crate) fn is_calling() -> bool {
    // FILTER-1, after the store of `put_in_force`. SeqCst: with the increment in `optional`. The
    // acquire in it pairs with the release there.
    CALLS.iter().any(|calls| calls.0.load(SeqCst) != 0)
}
