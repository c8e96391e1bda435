//! A form of lock benchmark that is often quoted for nsync and, after Justine Tunney's comparison,
//! for other locks: 30 threads, each of which adds 1 to one counter 100 000 times, under one lock.
//!
//! The time begins before the first thread is made and ends when the last one is joined, and
//! threads begin as soon as they are made. So on a few CPUs the first threads may have finished
//! before the last ones start: a lock that lets its owner go on looks good here. The other cases
//! measure fairness and waits.

use std::cell::UnsafeCell;
use std::ptr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::{Figures, Outcome};
use crate::bench::locks::subjects::Subject;
use crate::bench::usage::Usage;

/// Number of threads.
pub const THREADS: usize = 30;
/// Acquisitions of each thread.
const INCREMENTS: u64 = 100_000;
/// Time limit of the work; a lock that takes longer has no figure, as happens to fair spinlocks
/// where threads outnumber CPUs.
pub const LIMIT_S: f64 = 60.0;

/// Wall-clock time of the work, and CPU time of this process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Spent {
    /// Time from making the first thread to the end of the last one.
    pub wall_ns: f64,
    /// CPU time in user mode.
    pub user_ns: f64,
    /// CPU time in the kernel.
    pub system_ns: f64,
}

impl Spent {
    /// CPU time in both modes.
    pub fn cpu_ns(&self) -> f64 {
        self.user_ns + self.system_ns
    }
}

struct Shared<S> {
    lock: S,
    counter: UnsafeCell<u64>,
}

// SAFETY: the counter is accessed only under the lock; its sum exposes a lock that breaks this.
unsafe impl<S: Sync> Sync for Shared<S> {}

/// Measures `lock`.
pub fn run<S: Subject>(lock: S) -> Outcome {
    let shared = Shared { lock, counter: UnsafeCell::new(0) };
    let (usage, begin) = (Usage::now(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let Shared { lock, counter } = &shared;
                for _ in 0..INCREMENTS {
                    lock.hold(|| {
                        let word = counter.get();
                        // SAFETY: the address is valid; the lock must keep other threads from
                        // writing, and volatile keeps the accesses as written if it fails.
                        unsafe { ptr::write_volatile(word, ptr::read_volatile(word) + 1) };
                    });
                }
            });
        }
    });
    let (wall, usage) = (begin.elapsed(), Usage::now().since(usage));
    let (counted, made) = (shared.counter.into_inner(), THREADS as u64 * INCREMENTS);
    if counted != made {
        let what = format!("mutual exclusion is broken: {made} increments left {counted}");
        return Outcome::Violation(what);
    }
    Outcome::Figures(Figures::Justine(Spent {
        wall_ns: wall.as_nanos() as f64,
        user_ns: usage.user_ns as f64,
        system_ns: usage.system_ns as f64,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::contended::tests::Open;
    use super::*;

    #[test]
    fn a_lock_that_keeps_no_thread_out_is_found_out() {
        // On one CPU, threads may run one after the other for a while.
        let found = (0..50).any(|_| matches!(run(Open), Outcome::Violation(_)));
        assert!(found);
    }
}
