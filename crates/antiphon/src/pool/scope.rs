//! Scopes of tasks that borrow. A scope ends when all of its tasks have ended.

use std::any::Any;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Mutex;

use antiphon_linux::Linux;
use antiphon_platform::Platform as _;
use antiphon_runtime::sched::Put;
use antiphon_runtime::task::{Awaited, BiasedCountdown, Countdown, Task};

use super::blocks::Blocks;
use super::shared::Shared;
use super::{Policy, Pool, Standard};
use crate::debug::by_name;
use crate::fiber::stays;
use crate::unpoisoned::lock;
use crate::worker::wait_for;

type Panic = Box<dyn Any + Send>;

/// Spawns tasks that may borrow data that outlives the scope: see [`Pool::scope`].
pub struct Scope<'scope, 'env: 'scope, Y: Policy<Linux> + 'static = Standard> {
    shared: &'scope Shared<Y>,
    left: BiasedCountdown<Linux>,
    panic: Mutex<Option<Panic>>,
    /// Invariant, like the lifetimes of [`std::thread::scope`].
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Runs `work`, which may spawn tasks that borrow, and blocks until all of them are done,
    /// including those that they have spawned. A worker of the pool runs tasks while it waits.
    ///
    /// # Panics
    ///
    /// If `work` panics, with its payload; or if tasks panic, with the payload of the first.
    pub fn scope<'env, W, R>(&self, work: W) -> R
    where
        W: for<'scope> FnOnce(&'scope Scope<'scope, 'env, Y>) -> R,
    {
        let scope = Scope {
            shared: &self.shared,
            left: BiasedCountdown::new(stays().then(Linux::thread)),
            panic: Mutex::new(None),
            scope: PhantomData,
            env: PhantomData,
        };
        let worked = catch_unwind(AssertUnwindSafe(|| work(&scope)));
        wait_then(scope.left.close(), || scope.left.leave());
        let panicked = lock(&scope.panic).take();
        match (worked, panicked) {
            (Ok(done), None) => done,
            (Err(panic), _) | (Ok(_), Some(panic)) => resume_unwind(panic),
        }
    }
}

impl<'scope, Y: Policy<Linux> + 'static> Scope<'scope, '_, Y> {
    /// Queues `work` for a worker; it is done before the scope ends. If there is no room, it
    /// behaves like [`Pool::spawn`](super::Pool::spawn).
    #[track_caller]
    pub fn spawn<F>(&'scope self, work: F)
    where
        F: FnOnce() + Send + 'scope,
    {
        self.left.add();
        let run = move || {
            // Dropped last, even if the task panics.
            let _done = Done(&self.left);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                // A later panic is dropped. Values in it may wait, so it is not dropped under the
                // lock.
                let _other = self.keep(panic);
            }
        };
        // SAFETY: `Pool::scope` waits for it, even if the closure panics.
        let task = unsafe { Task::borrowing_in(Blocks, run) };
        self.shared.spawn(task, Location::caller(), Put::PLAIN);
    }
}

impl<Y: Policy<Linux> + 'static> Scope<'_, '_, Y> {
    /// Keeps the payload of the first panic, and hands back later ones.
    fn keep(&self, panic: Panic) -> Option<Panic> {
        let mut first = lock(&self.panic);
        if first.is_some() { Some(panic) } else { first.replace(panic) }
    }
}

/// Blocks until all tasks of a countdown are done. Only for the owner of the countdown: see
/// [`Countdown::wait`]. A worker of any pool runs other tasks of its pool while it waits.
///
/// ```
/// use antiphon::pool::{Pool, wait_all};
/// use antiphon_linux::Linux;
/// use antiphon_runtime::task::Countdown;
///
/// static LEFT: Countdown<Linux> = Countdown::NEW;
///
/// let pool = Pool::new(2)?;
/// for _ in 0..10 {
///     LEFT.add();
///     pool.spawn(|| LEFT.done());
/// }
/// wait_all(&LEFT);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn wait_all(left: &Countdown<Linux>) {
    wait_then(left.close(), || left.leave());
}

/// Blocks until a countdown is done, then leaves it.
fn wait_then(awaited: Option<Awaited<'_, Linux>>, leave: impl Fn()) {
    if let Some(awaited) = awaited {
        let _leaves = Leaves(leave);
        wait_for(&awaited);
    }
}

/// Waits on drop until the tasks are done, even if the policy panics.
struct Leaves<F: Fn()>(F);

impl<F: Fn()> Drop for Leaves<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Counts a task as done when dropped.
struct Done<'a>(&'a BiasedCountdown<Linux>);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.done();
    }
}

by_name!([Y: Policy<Linux> + 'static] Scope<'_, '_, Y>, "Scope");
