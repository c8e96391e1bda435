//! Scopes of tasks that borrow. A scope ends when all of its tasks have ended.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::abort;
use std::sync::Mutex;

use antiphon_runtime::sched::Put;
use antiphon_runtime::task::{Countdown, Task};
use antiphon_sim::Sim;

use super::Pool;
use super::run::{Caught, current, linger};
use crate::debug::by_name;
use crate::unpoisoned::lock;

/// Spawns tasks that may borrow data that outlives the scope: see [`Pool::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    pool: Pool,
    left: Countdown<Sim>,
    /// No task lets others run while it holds this lock.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Invariant, like the lifetimes of [`std::thread::scope`].
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl Pool {
    /// Runs `work`, which may spawn tasks that borrow, and waits until these tasks, and the tasks
    /// that they have spawned in the scope, are done. A worker runs tasks meanwhile.
    ///
    /// # Panics
    ///
    /// If `work` panics, with its payload; or if tasks panic, with the payload of the first.
    pub fn scope<'env, W, R>(self, work: W) -> R
    where
        W: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    {
        let run = self.run();
        let scope = Scope {
            pool: self,
            left: Countdown::NEW,
            panic: Mutex::new(None),
            scope: PhantomData,
            env: PhantomData,
        };
        let worked = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        let wait = || {
            if let Some(awaited) = scope.left.close() {
                run.wait_for(&awaited);
                scope.left.leave();
            }
        };
        // If this unwound, tasks would still run after their borrowed data is gone. So abort.
        catch_unwind(AssertUnwindSafe(wait)).unwrap_or_else(|_| abort());
        let panicked = lock(&scope.panic).take();
        match (worked, panicked) {
            (Ok(done), None) => done,
            (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns `work` as a task that is done before the scope ends. Runs it at once if there is no
    /// room.
    pub fn spawn<F>(&'scope self, work: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        let run = self.pool.run();
        let number = run.spawn();
        self.left.add();
        let task = move || {
            // Dropped last, even if the task panics.
            let _done = Done(&self.left);
            if let Err(caught) = current().perform(number, work, |()| false) {
                let mut first = lock(&self.panic);
                first.get_or_insert(Caught::into_panic(caught));
            }
        };
        // SAFETY: `Pool::scope` waits for it, unless the whole run is given up: then its stack is
        // leaked, and no code of the run is executed any more.
        let task = unsafe { Task::borrowing_in(antiphon_runtime::task::Heap, task) };
        run.put_or_run(task, Put::PLAIN);
        linger();
    }
}

/// Counts a task as done when dropped.
struct Done<'a>(&'a Countdown<Sim>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.done();
    }
}

by_name!([] Scope<'_, '_>, "Scope");
