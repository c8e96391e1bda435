//! chili: only `join`, with heartbeats.

use std::num::NonZero;
use std::time::Duration;

use chili::{Config, Scope, ThreadPool};

use super::Runtime;
use crate::bench::tasks::measure::{fibonacci, took};

/// A separate pool, in which the calling thread is a worker.
pub struct Chili(ThreadPool);

impl Chili {
    pub fn new(workers: usize) -> Self {
        let thread_count = NonZero::new(workers);
        Self(ThreadPool::with_config(Config { thread_count, ..Config::default() }))
    }
}

fn call(scope: &mut Scope<'_>, n: u32) -> u64 {
    fibonacci(n, |one, other| scope.join(|scope| call(scope, one), |scope| call(scope, other)))
}

impl Runtime for Chili {
    fn fork_join(&self, n: u32, times: usize) -> Duration {
        let mut scope = self.0.scope();
        took(times, || _ = std::hint::black_box(call(&mut scope, n)))
    }
}
