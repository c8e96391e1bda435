//! may: coroutines with stacks.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use may::coroutine::{spawn, yield_now};
use may::sync::Semphore;

use super::{Look, Runtime, park};
use crate::bench::tasks::measure::took;

/// The scheduler, of which each process has one.
pub struct May;

impl May {
    pub fn new(workers: usize) -> Self {
        may::config().set_workers(workers);
        Self
    }
}

impl Runtime for May {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        let all = move || {
            took(times, || {
                // SAFETY: the coroutine does nothing.
                let spawned = || unsafe { spawn(|| ()) };
                let handles: Vec<_> = (0..batch).map(|_| spawned()).collect();
                handles.into_iter().for_each(|handle| handle.join().expect("it does nothing"));
            })
        };
        // SAFETY: the coroutine uses no thread-local.
        unsafe { spawn(all) }.join().expect("none of its coroutines panics")
    }

    fn yields(&self, tasks: usize, each: usize) -> Duration {
        let begun = Instant::now();
        // SAFETY: the coroutine uses no thread-local.
        let yields = |_| unsafe { spawn(move || (0..each).for_each(|_| yield_now())) };
        let all: Vec<_> = (0..tasks).map(yields).collect();
        all.into_iter().for_each(|task| task.join().expect("it does nothing"));
        begun.elapsed()
    }

    fn parked(&self, tasks: usize, look: Look<'_>) {
        let (open, mut all) = (Arc::new(Semphore::new(0)), Vec::with_capacity(tasks));
        park(tasks, look, |here| {
            let open = open.clone();
            let waits = move || {
                here.fetch_add(1, Relaxed);
                open.wait();
            };
            // SAFETY: the coroutine uses no thread-local.
            all.push(unsafe { spawn(waits) });
        });
        (0..tasks).for_each(|_| open.post());
        all.into_iter().for_each(|task| task.join().expect("it waits, and no more"));
    }
}
