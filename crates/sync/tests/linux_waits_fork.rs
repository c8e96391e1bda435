//! A process forks while its threads wait at a barrier, for a semaphore and for a once.
//!
//! In its own process, because the child starts threads, and inherits the locks of the C library,
//! which other tests' threads may hold.

#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::policy::None;
use antiphon_sync::wait;
use support::{FORKS, in_child};

type Barrier = wait::Barrier<Linux>;
type Semaphore = wait::Semaphore<Linux, None>;
type Once = wait::Once<Linux>;

/// In the child of a fork, no caller waits for threads of the parent.
#[test]
fn what_a_parent_was_waiting_for_is_done_anew_in_its_child() {
    fn check(fork: support::Fork) -> bool {
        let (once, begun, end) = (Once::NEW, AtomicU32::new(0), AtomicBool::new(false));
        let barrier = Barrier::new(3);
        let semaphore = Semaphore::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    once.call_once(|| {
                        begun.store(1, Relaxed);
                        while !end.load(Relaxed) {
                            thread::sleep(Duration::from_millis(1));
                        }
                    });
                });
            }
            scope.spawn(|| barrier.wait());
            scope.spawn(|| semaphore.acquire());
            // Until all of them wait.
            while begun.load(Relaxed) == 0 || !semaphore.has_waiters() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(20));
            let fine = in_child(fork, || {
                let mut ran = false;
                once.call_once(|| ran = true);
                let met = thread::scope(|scope| {
                    scope.spawn(|| semaphore.acquire());
                    let others = [(); 2].map(|()| scope.spawn(|| barrier.wait()));
                    let leads = barrier.wait();
                    let leaders = others.map(|other| other.join().unwrap_or(false));
                    barrier.retire();
                    semaphore.release(1) == Ok(())
                        && u32::from(leads) + leaders.map(u32::from).iter().sum::<u32>() == 1
                });
                ran && once.is_completed() && met && semaphore.permits() == 0
            });
            end.store(true, Relaxed);
            let _ = semaphore.release(1);
            scope.spawn(|| barrier.wait());
            barrier.wait();
            fine
        })
    }
    for (name, fork) in FORKS {
        assert!(check(fork), "after {name}");
    }
}
