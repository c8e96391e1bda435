//! Our scopes: tasks that borrow and are joined together.

use std::io;
use std::time::Duration;

use antiphon::pool::Pool;

use super::{Look, Runtime};
use crate::bench::tasks::measure::took;

/// The pool.
pub struct Scope(Pool);

impl Scope {
    pub fn new(workers: usize) -> io::Result<Self> {
        Pool::new(workers).map(Self)
    }
}

impl Runtime for Scope {
    fn spawn_join(&self, batch: usize, times: usize) -> Duration {
        self.0.run(|| {
            took(times, || self.0.scope(|scope| (0..batch).for_each(|_| scope.spawn(|| ()))))
        })
    }

    fn idle(&self, tasks: usize, look: Look<'_>) {
        self.0.run(|| {
            self.0.scope(|scope| {
                look(false);
                (0..tasks).for_each(|_| scope.spawn(|| ()));
                look(true);
            });
        });
    }
}
