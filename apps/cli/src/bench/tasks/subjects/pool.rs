//! Ours, with a handle for each task; and `join`.

use std::io;
use std::time::Duration;

use antiphon::pool;

use super::{Look, Runtime};
use crate::bench::tasks::measure::{fibonacci, took};

/// The pool.
pub struct Pool(pool::Pool);

impl Pool {
    pub fn new(workers: usize) -> io::Result<Self> {
        pool::Pool::new(workers).map(Self)
    }
}

fn call(n: u32) -> u64 {
    fibonacci(n, |one, other| pool::join(|| call(one), || call(other)))
}

impl Runtime for Pool {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        self.0.run(|| {
            took(times, || {
                let handles: Vec<_> = (0..batch).map(|_| self.0.spawn(|| ())).collect();
                handles.into_iter().for_each(|handle| handle.join().expect("it does nothing"));
            })
        })
    }

    fn fork_join(&self, n: u32, times: usize) -> Duration {
        self.0.run(|| took(times, || _ = std::hint::black_box(call(n))))
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        self.0.run(|| {
            let mut handles = Vec::with_capacity(tasks);
            look(false);
            handles.extend((0..tasks).map(|_| self.0.spawn(|| ())));
            look(true);
        });
    }
}
