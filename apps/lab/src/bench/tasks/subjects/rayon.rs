//! Rayon: scopes, and `join`.

use std::time::Duration;

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::{Look, Runtime};
use crate::bench::tasks::measure::{fibonacci, took};

/// A separate pool.
pub struct Rayon(ThreadPool);

impl Rayon {
    pub fn new(workers: usize) -> Result<Self, ThreadPoolBuildError> {
        ThreadPoolBuilder::new().num_threads(workers).build().map(Self)
    }
}

fn call(n: u32) -> u64 {
    fibonacci(n, |one, other| rayon::join(|| call(one), || call(other)))
}

impl Runtime for Rayon {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        self.0.install(|| {
            took(times, || rayon::scope(|scope| (0..batch).for_each(|_| scope.spawn(|_| ()))))
        })
    }

    fn fork_join(&self, n: u32, times: usize) -> Duration {
        self.0.install(|| took(times, || _ = std::hint::black_box(call(n))))
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        self.0.install(|| {
            rayon::scope(|scope| {
                look(false);
                (0..tasks).for_each(|_| scope.spawn(|_| ()));
                look(true);
            });
        });
    }
}
