//! Work on all CPUs of the host.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{iter, thread};

/// Does all jobs, on as many threads as there are CPUs, and returns what came of them, in order.
/// Each thread takes the next job when it is done with one. Blocks meanwhile.
///
/// # Panics
///
/// If a job does.
pub fn on_all<T: Sync, R: Send>(jobs: &[T], job: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = iter::from_fn(|| {
            // Relaxed: each place is handed out once, and publishes no other data.
            let place = next.fetch_add(1, Relaxed);
            Some((place, job(jobs.get(place)?)))
        });
        mine.collect::<Vec<_>>()
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
