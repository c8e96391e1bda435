//! Filters of system calls: what a process does without once one is in force.
//!
//! A program that puts itself behind a filter allows what it needs itself. Its locks need the futex
//! and nothing else, but ask for more where that is to be had: the thread's id, how crowded the
//! machine is, memory for more waiters. A filter may answer such a question by killing the process,
//! and there is no way to find out that doesn't ask.
//!
//! So a caller that sees that a filter is about to be installed says so first
//! ([`expect_filter`](crate::expect_filter)). What is needed is made ready then (`expect.rs`), and
//! from then on **every** call of this crate is refused here, before the kernel could refuse it,
//! but for those that a wait can't do without ([`crate::sys`]). All of the crate does without what
//! is refused, as its README says for each facility.
//!
//! | what | instead |
//! |---|---|
//! | `gettid` | the caller of `expect_filter` knows a way without a system call |
//! | `sched_yield` | a sleep of 50 µs on a futex |
//! | `mmap`, `mprotect`: more nodes | 4096 more are opened beforehand; then waits without |
//! | `tkill`: is it dead? | it lives; threads that end give their nodes back (`end_thread`) |
//! | `membarrier`, `rseq` | as where they are missing: see [`crate::light`] |
//! | `getrusage`, `sched_getaffinity`, files | what was known before |
//!
//! Other threads may be about to make a call at that very moment. So calls are counted while they
//! are made ([`optional`]), and `expect_filter` returns when those have come back that did not see
//! that it had begun:
//!
//! - FILTER-1: a thread counts itself, and looks at `IN_FORCE` then; the installer sets that, and
//!   looks at the counts then. All four are sequentially consistent, so one of them sees the other.
//!
//! A filter that was there when the process began is not known: all calls are made, as ever.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};

use crate::local;

static IN_FORCE: AtomicBool = AtomicBool::new(false);

/// How many threads are at a call. On lines of their own, so that those that yield all the time do
/// not have one line to fight for.
#[repr(align(64))]
struct Calls(AtomicU32);
const LINES: usize = 16;
static CALLS: [Calls; LINES] = [const { Calls(AtomicU32::new(0)) }; LINES];
/// The function that tells the calling thread's id, without a system call; written before
/// `IN_FORCE`.
static ID: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Whether a filter of system calls is in force, or is about to be: then no system call may be made
/// but `futex`. A load and a branch.
#[inline]
#[must_use]
pub fn filtered() -> bool {
    // Acquire: `ID`; pairs with the release in `put_in_force`.
    IN_FORCE.load(Acquire)
}

/// Makes a call that can be done without; `None` where a filter is in force.
#[doc(hidden)]
#[inline]
pub fn optional<R>(call: impl FnOnce() -> R) -> Option<R> {
    let calls = local::with(|thread| {
        // Threads have their states far apart.
        let at = core::ptr::from_ref(thread).addr();
        &CALLS[(at >> 12 ^ at >> 20) % LINES].0
    });
    // FILTER-1. SeqCst: with the store of `put_in_force` and the loads of `is_calling`.
    calls.fetch_add(1, SeqCst);
    let result = if IN_FORCE.load(SeqCst) { None } else { Some(call()) };
    // Release: the call has been made; pairs with the loads in `is_calling`.
    calls.fetch_sub(1, Release);
    result
}

/// In the child of a fork: the threads that were at a call are not here.
pub fn forked() {
    // Relaxed: there is no other thread.
    CALLS.iter().for_each(|calls| calls.0.store(0, Relaxed));
}

/// The id of the calling thread, where a filter is in force.
pub(crate) fn id() -> u32 {
    let id = ID.load(Relaxed);
    if id.is_null() {
        return 1;
    }
    // SAFETY: `put_in_force` has stored a function of that type.
    let id = unsafe { core::mem::transmute::<*mut (), fn() -> u32>(id) };
    id()
}

/// Puts a filter in force for good. `id` tells the calling thread's id without a system call.
pub(crate) fn put_in_force(id: fn() -> u32) {
    // Relaxed: released below.
    ID.store(id as *mut (), Relaxed);
    // FILTER-1. Release: pairs with the acquire in `filtered`; SeqCst: with `optional`.
    IN_FORCE.store(true, SeqCst);
}

/// Whether a thread is at a call that may not have seen the filter.
pub(crate) fn is_calling() -> bool {
    // FILTER-1, as above.
    CALLS.iter().any(|calls| calls.0.load(SeqCst) != 0)
}
