//! may: coroutines with stacks.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use may::coroutine::{spawn, yield_now};
use may::sync::Semphore;

use super::{Look, Runtime, until_all};

/// The scheduler, of which a process has one.
pub struct May;

impl May {
    pub fn new(workers: usize) -> Self {
        may::config().set_workers(workers);
        Self
    }
}

impl Runtime for May {
    fn yields(&self, tasks: usize, each: usize) -> Duration {
        let begun = Instant::now();
        // SAFETY: it uses nothing of a thread.
        let yields = |_| unsafe { spawn(move || (0..each).for_each(|_| yield_now())) };
        let all: Vec<_> = (0..tasks).map(yields).collect();
        all.into_iter().for_each(|task| task.join().expect("it does nothing"));
        begun.elapsed()
    }

    fn parked(&self, tasks: usize, look: Look<'_>) {
        let (open, here) = (Arc::new(Semphore::new(0)), Arc::new(AtomicUsize::new(0)));
        look(false);
        let parks = |_| {
            let (open, here) = (open.clone(), here.clone());
            let waits = move || {
                here.fetch_add(1, Relaxed);
                open.wait();
            };
            // SAFETY: as above.
            unsafe { spawn(waits) }
        };
        let all: Vec<_> = (0..tasks).map(parks).collect();
        until_all(tasks, &here);
        look(true);
        (0..tasks).for_each(|_| open.post());
        all.into_iter().for_each(|task| task.join().expect("it waits, and no more"));
    }
}
