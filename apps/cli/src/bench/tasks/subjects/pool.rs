//! Ours, with a handle for each task.

use std::io;
use std::time::Duration;

use antiphon::pool;

use super::{Look, Runtime};
use crate::bench::tasks::measure::took;

/// The pool.
pub struct Pool(pool::Pool);

impl Pool {
    pub fn new(workers: usize) -> io::Result<Self> {
        pool::Pool::new(workers).map(Self)
    }
}

/// Has a worker of the pool do it.
pub fn inside<R: Send>(pool: &pool::Pool, work: impl FnOnce() -> R + Send) -> R {
    let mut returned = None;
    pool.scope(|scope| scope.spawn(|| returned = Some(work())));
    returned.expect("a scope ends when its tasks have")
}

impl Runtime for Pool {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        inside(&self.0, || {
            took(times, || {
                let handles: Vec<_> = (0..batch).map(|_| self.0.spawn(|| ())).collect();
                handles.into_iter().for_each(|handle| handle.join().expect("it does nothing"));
            })
        })
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        inside(&self.0, || {
            let mut handles = Vec::with_capacity(tasks);
            look(false);
            handles.extend((0..tasks).map(|_| self.0.spawn(|| ())));
            look(true);
        });
    }
}
