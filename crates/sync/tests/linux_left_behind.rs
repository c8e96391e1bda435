//! Tests the bound of the nodes that all threads together leave behind in queues.
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

/// Threads that end also leave their nodes behind: their total number is bounded, and the next
/// owner reclaims these nodes.
#[test]
fn threads_that_come_and_give_up_leave_some_thousand_nodes() {
    const AT_ONCE: i32 = 50;
    const GROUPS: i32 = 60;
    const IN_ALL: i32 = 4096;
    static LOCK: ShflMutex<Linux> = ShflMutex::NEW;
    let soon = || Deadline { clock: Clock::Monotonic, ns: Linux::now(Clock::Monotonic) + 100_000 };
    let left_behind = || arena().left_behind().cast_signed();
    LOCK.lock();
    let head = thread::spawn(|| {
        LOCK.lock();
        // SAFETY: locked above.
        unsafe { LOCK.unlock() };
    });
    thread::sleep(Duration::from_millis(50));
    for _ in 0..GROUPS {
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| assert!(!(0..2).any(|_| LOCK.lock_until(soon()))));
            }
        });
    }
    let left = left_behind();
    assert!(left > IN_ALL / 2, "{left}: most of {} waits left one", 2 * AT_ONCE * GROUPS);
    assert!(left < IN_ALL + 2 * AT_ONCE, "{left}");
    // SAFETY: locked above.
    unsafe { LOCK.unlock() };
    assert!(head.join().is_ok());
    assert!(left_behind() <= 0, "{} are still there", left_behind());
}
