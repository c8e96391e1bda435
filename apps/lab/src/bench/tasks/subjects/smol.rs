//! smol's executor, with a handle for each task.

use std::future::pending;
use std::time::{Duration, Instant};
use std::{io, thread};

use async_executor::Executor;
use futures_lite::future::{block_on, yield_now};

use super::{Look, Runtime, park, parked};

/// The executor. It lives until the process ends, as its threads do.
pub struct Smol(&'static Executor<'static>);

impl Smol {
    pub fn new(workers: usize) -> io::Result<Self> {
        let executor: &'static Executor<'_> = Box::leak(Box::new(Executor::new()));
        for _ in 0..workers {
            thread::Builder::new().spawn(|| block_on(executor.run(pending::<()>())))?;
        }
        Ok(Self(executor))
    }
}

impl Runtime for Smol {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        let executor = self.0;
        block_on(executor.spawn(async move {
            let begun = Instant::now();
            for _ in 0..times {
                let tasks: Vec<_> = (0..batch).map(|_| executor.spawn(async {})).collect();
                for task in tasks {
                    task.await;
                }
            }
            begun.elapsed()
        }))
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        // An executor without threads: those of the other would run the tasks at once.
        let executor = Executor::new();
        let mut spawned = Vec::with_capacity(tasks);
        look(false);
        spawned.extend((0..tasks).map(|_| executor.spawn(async {})));
        look(true);
    }

    fn yields(&self, tasks: usize, each: usize) -> Duration {
        let begun = Instant::now();
        let yields = || async move {
            for _ in 0..each {
                yield_now().await;
            }
        };
        let all: Vec<_> = (0..tasks).map(|_| self.0.spawn(yields())).collect();
        block_on(async {
            for task in all {
                task.await;
            }
        });
        begun.elapsed()
    }

    fn parked(&self, tasks: usize, look: Look<'_>) {
        park(tasks, look, |here| self.0.spawn(parked(here)).detach());
    }
}
