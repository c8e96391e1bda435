//! A million waits that time out on one held lock.
//!
//! In its own process, because it counts nodes.

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _, Deadline};
use antiphon_sync::lock::ShflMutex;
use support::arena;

/// A node that cannot leave its place in a queue is left behind: at most two per thread, whatever
/// the number of waits.
#[test]
fn a_million_timed_out_waits_leave_two_nodes_a_thread() {
    const THREADS: u32 = 4;
    const WAITS: u32 = 250_000;
    static LOCK: ShflMutex<Linux> = ShflMutex::NEW;
    let past = || Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) };
    LOCK.lock();
    let nodes = thread::scope(|scope| {
        // A live head, behind which the abandoned nodes pile up.
        scope.spawn(|| {
            LOCK.lock();
            // SAFETY: locked above.
            unsafe { LOCK.unlock() };
        });
        while arena().high_water() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let waiters: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| (0..WAITS).filter(|_| LOCK.lock_until(past())).count()))
            .collect();
        let had: Vec<_> = waiters.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let nodes = arena().high_water() - 1;
        // SAFETY: locked above.
        unsafe { LOCK.unlock() };
        assert!(had.iter().all(|had| matches!(had, Ok(0))), "the lock was held: {had:?}");
        nodes
    });
    assert!(nodes <= 2 * THREADS, "{nodes} nodes of {THREADS} threads");
    assert!(nodes >= THREADS, "each has left one at least: {nodes}");
    assert!(LOCK.try_lock(), "all is as if they had never been");
}
