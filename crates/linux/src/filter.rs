//! Filters of system calls: what a process does without once one is in force.
//!
//! A program that puts itself behind a filter allows what it needs itself. Its locks need the futex
//! and nothing else, but ask for more where that is to be had: who the thread is, how crowded the
//! machine is, memory for more waiters. A filter may answer such a question by killing the process,
//! and there is no way to find out that doesn't ask.
//!
//! So whoever sees that a filter is about to be installed says so first ([`expect_filter`]). What is
//! needed is made ready then, and from then on **every** call of this crate is refused here, before
//! the kernel could refuse it, but for those that a wait can't do without ([`crate::sys`]). All of
//! the crate does without what is refused, as its README says for each facility.
//!
//! | what | instead |
//! |---|---|
//! | `gettid` | the caller of [`expect_filter`] knows a way without a system call |
//! | `sched_yield` | a sleep of [`NAP_NS`] on a futex |
//! | `mmap`, `mprotect`: more nodes | [`AHEAD`] more are opened beforehand; then waits without |
//! | `tkill`: who is dead | all live; threads that end give their nodes back ([`end_thread`]) |
//! | `membarrier`, `rseq` | as where they are missing: see [`crate::light`] |
//! | `getrusage`, `sched_getaffinity`, files | what was known before |
//!
//! A filter that was there when the process began is not known: all calls are made, as ever.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr};

use antiphon_platform::Platform;

use crate::{ARENA, Linux, counter, distance, identity, nodes, tsc};

/// How many nodes are opened beforehand, at least.
const AHEAD: u32 = 4096;
/// How long a sleep is in place of a yield.
pub(crate) const NAP_NS: u64 = 50_000;

static IN_FORCE: AtomicBool = AtomicBool::new(false);
/// Who the calling thread is, without a system call; written before `IN_FORCE`.
static ID: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Whether a filter of system calls is in force, or is about to be: then no system call may be made
/// but `futex`. A load and a branch.
#[inline]
#[must_use]
pub fn filtered() -> bool {
    // Acquire: `ID`; pairs with the release in `expect_filter`.
    IN_FORCE.load(Acquire)
}

/// A filter of system calls is about to be installed, for this thread or all. For good: if that
/// fails, the process does without all the same. May open and read files.
///
/// `id` says what the kernel calls the calling thread, and makes no system call.
pub fn expect_filter(id: fn() -> u32) {
    if filtered() {
        return;
    }
    prepare();
    // Relaxed: released below.
    ID.store(id as *mut (), Relaxed);
    // Release: pairs with the acquire in `filtered`.
    IN_FORCE.store(true, Release);
}

/// What the first waiter would otherwise ask for.
fn prepare() {
    let _ = (identity::epoch(), Linux::thread(), Linux::crowded(), Linux::random());
    let _ = (distance::tiered(), counter::source());
    tsc::refine();
    nodes::open_ahead(ARENA.high_water().saturating_add(AHEAD));
}

/// Who the calling thread is, where a filter is in force.
pub(crate) fn id() -> u32 {
    let id = ID.load(Relaxed);
    if id.is_null() {
        return 1;
    }
    // SAFETY: `expect_filter` has stored a function of that type.
    let id = unsafe { core::mem::transmute::<*mut (), fn() -> u32>(id) };
    id()
}

/// The calling thread is about to end: its nodes are for others, who can't see that it has.
pub fn end_thread() {
    ARENA.give_up_cached();
}
