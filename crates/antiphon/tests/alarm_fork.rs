//! Timed waits of futures in the child of a fork. In a separate process, because it forks.

use std::time::{Duration, Instant};

use antiphon::fiber;
use antiphon::select::Select;

const IN_CHILD: i32 = 7;
/// Longer than any wait of a child that works, in seconds.
const LONG: u32 = 60;

fn waits_for_a_time() {
    let soon = Instant::now() + Duration::from_millis(5);
    fiber::block_on(Select::new().timer(soon, || ()).wait_async());
}

/// A child has no thread that wakes futures, and must start one, even if its parent had one.
#[test]
fn a_child_wakes_its_own_futures() {
    waits_for_a_time();
    // SAFETY: the child only uses waits of this crate, and ends by itself.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: only lets a signal end the process after that time.
        unsafe { libc::alarm(LONG) };
        waits_for_a_time();
        // SAFETY: ends the process.
        unsafe { libc::_exit(IN_CHILD) }
    }
    let mut status = 0;
    // SAFETY: a child of ours that was not waited for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "it was woken by nobody: {status}");
    assert_eq!(libc::WEXITSTATUS(status), IN_CHILD);
    waits_for_a_time();
}
