//! A work notification as in Legion: workers sleep, a task is broadcast, one worker claims it.
//!
//! `cargo run --release -p antiphon --example work_notification`

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use antiphon::Broadcast;

const WORKERS: usize = 8;
const TASKS: u32 = 100;

/// Sent when the counts below have changed.
static WORK: Broadcast = Broadcast::new();
/// The number of tasks that were made, and that were claimed.
static MADE: AtomicU32 = AtomicU32::new(0);
static CLAIMED: AtomicU32 = AtomicU32::new(0);

/// Claims a task for the caller, and returns its number, if there is an unclaimed task.
fn claim() -> Option<u32> {
    // Relaxed: `now` and `wait` order all operations before a send.
    let made = MADE.load(Relaxed);
    CLAIMED.fetch_update(Relaxed, Relaxed, |next| (next < made).then_some(next + 1)).ok()
}

fn worker() -> u32 {
    let mut done = 0;
    loop {
        // Called before the check: a task that is made later ends the wait.
        let seen = WORK.now();
        if claim().is_some() {
            done += 1;
        } else if CLAIMED.load(Relaxed) == TASKS {
            // The other workers sleep, and no more tasks will come.
            WORK.send();
            return done;
        } else {
            WORK.wait(seen);
        }
    }
}

fn main() {
    let done: Vec<u32> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        for _ in 0..TASKS {
            MADE.fetch_add(1, Relaxed);
            WORK.send();
            thread::yield_now();
        }
        workers.into_iter().map(|worker| worker.join().expect("it has not panicked")).collect()
    });
    println!("tasks by worker: {done:?}");
    assert_eq!(done.iter().sum::<u32>(), TASKS, "each task has one worker");
}
