//! Preparations for a [filter](crate::filter) of system calls, and the end of a thread behind one.

use antiphon_platform::{Clock, Hints as _, Platform};

use crate::{ARENA, Linux, clock, counter, distance, filter, futex, identity, nodes, tsc};

/// How many nodes are opened beforehand, at least.
const AHEAD: u32 = 4096;
/// How long the installer waits for threads that are at a call. One may be its own, if it is a
/// signal handler.
const PATIENCE_NS: u64 = 50_000_000;

/// Says that a filter of system calls is about to be installed, for this thread or all. For good:
/// if the installation fails, the process does without the calls all the same. May open and read
/// files.
///
/// `id` returns the kernel's id of the calling thread, and makes no system call.
pub fn expect_filter(id: fn() -> u32) {
    if filter::filtered() {
        return;
    }
    prepare();
    filter::put_in_force(id);
    let since = clock::now(Clock::Monotonic);
    // FILTER-1.
    while filter::is_calling() && clock::now(Clock::Monotonic) - since < PATIENCE_NS {
        futex::yield_now();
    }
}

/// Asks for what the first waiter would otherwise ask for.
fn prepare() {
    let _ = (identity::epoch(), Linux::thread(), Linux::crowded(), Linux::random());
    let _ = (distance::tiered(), counter::source());
    tsc::refine();
    // They are opened in their order, in pieces of more than that.
    const STEP: usize = 512;
    let last = ARENA.high_water().saturating_add(AHEAD).min(nodes::WAITERS - 1);
    for index in (1..last).step_by(STEP).chain([last]) {
        let _ = nodes::node(index);
    }
}

/// Gives up the nodes of the calling thread, which is about to end: others can't see that it has.
pub fn end_thread() {
    ARENA.give_up_cached();
}
