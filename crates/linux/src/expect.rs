//! Preparation for a [filter](crate::filter) of system calls, and the end of a thread under a
//! filter.

use antiphon_platform::{Clock, Hints as _, Platform};

use crate::{ARENA, Linux, clock, counter, distance, filter, futex, identity, nodes, tsc};

/// The least number of nodes that are opened in advance.
const AHEAD: u32 = 4096;
/// The longest time that the installer waits for threads inside a system call. In a signal handler,
/// its own thread may be one.
const PATIENCE_NS: u64 = 50_000_000;

/// Announces that a filter of system calls will be installed, for this thread or all threads. This
/// can't be undone: if the installation fails, the process still avoids the calls. May open and
/// read files.
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

/// Makes the queries that the first waiter would otherwise make.
fn prepare() {
    let _ = (identity::epoch(), Linux::thread(), Linux::crowded(), Linux::random());
    let _ = (distance::tiered(), counter::source());
    tsc::refine();
    // Nodes are opened in order, in pieces of more than `STEP`.
    const STEP: usize = 512;
    let last = ARENA.high_water().saturating_add(AHEAD).min(nodes::WAITERS - 1);
    for index in (1..last).step_by(STEP).chain([last]) {
        let _ = nodes::node(index);
    }
}

/// Gives up the nodes of the calling thread, which is about to end: under a filter, other threads
/// can't see that it has ended.
pub fn end_thread() {
    ARENA.give_up_cached();
}
