//! A process forks while one of its threads sorts a mutex's queue: the lock is sound in the child,
//! and in the parent.
//!
//! Tests only the mutex: on a machine of two CPUs, the spinlock's queue admits too few spinning
//! waiters to sort.

mod common;
#[path = "../../linux/tests/support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::{Atomic, Platform};
use antiphon_sync::lock::ShflMutex;
use antiphon_sync::policy::{Policy, Waiting};
use common::sound::Sound;
use support::{FORKS, in_child};

/// Whether a shuffler is in the middle of the queue, and whether it may go on.
static INSIDE: AtomicBool = AtomicBool::new(false);
static GO_ON: AtomicBool = AtomicBool::new(false);

/// Groups every second waiter, and stops at the first until told to go on. Each waiter is delayed
/// before it joins the queue and before it sorts: so there is a queue to sort.
#[derive(Clone, Copy, Default, PartialEq)]
struct Halting;

impl Policy for Halting {
    fn shuffles<P: Platform>(self) -> bool {
        if !GO_ON.load(Relaxed) {
            thread::sleep(Duration::from_millis(30));
        }
        true
    }

    fn groups<P: Platform>(self, _: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        INSIDE.store(true, Relaxed);
        while !GO_ON.load(Relaxed) {
            thread::yield_now();
        }
        // Relaxed: the arena has written it before the waiter joined the queue.
        // SAFETY: the shuffler is looking at the candidate, so its node is valid.
        unsafe { candidate.node() }.generation.load(Relaxed) % 4 == 1
    }
}

type Mutex = ShflMutex<Linux, Halting, Sound>;

fn unlock(lock: &Mutex) {
    // SAFETY: each caller owns it.
    unsafe { lock.unlock() }
}

/// `threads` threads lock and unlock, after the caller, which holds the lock, has unlocked.
fn contend(lock: &Mutex, threads: u32) -> bool {
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..200 {
                    lock.lock();
                    done.fetch_add(1, Relaxed);
                    unlock(lock);
                }
            });
        }
        thread::sleep(Duration::from_millis(2));
        unlock(lock);
    });
    done.load(Relaxed) == 200 * threads
}

fn fork_in_the_middle(name: &str, fork: support::Fork) {
    let lock = Mutex::NEW;
    INSIDE.store(false, Relaxed);
    GO_ON.store(false, Relaxed);
    lock.lock();
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                lock.lock();
                unlock(&lock);
            });
        }
        let begun = Instant::now();
        while !INSIDE.load(Relaxed) && begun.elapsed() < Duration::from_secs(20) {
            thread::yield_now();
        }
        let shuffles = INSIDE.load(Relaxed);
        let fine = in_child(fork, || {
            GO_ON.store(true, Relaxed);
            contend(&lock, 3) && lock.try_lock()
        });
        GO_ON.store(true, Relaxed);
        unlock(&lock);
        assert!(shuffles && fine, "after {name}: {shuffles}");
    });
    assert!(lock.try_lock());
}

// One test only, because there is one shuffler.
#[test]
fn a_fork_in_the_middle_of_shuffling_breaks_nothing() {
    for (name, fork) in FORKS {
        fork_in_the_middle(name, fork);
    }
}
