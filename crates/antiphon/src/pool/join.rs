//! Fork and join on the workers of a pool.

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

use antiphon_linux::Linux;
use antiphon_runtime::fork;
use antiphon_runtime::sched::Put;
use antiphon_runtime::task::Task;

use super::blocks::Blocks;
use super::here::ask;
use super::{Policy, Pool};
use crate::worker::{Forking, wait_for};

/// Runs both closures and returns their results. The second may run on another worker of the pool
/// at the same time. Costs a few nanoseconds: fork as finely as you like.
///
/// ```
/// use antiphon::pool::{self, Pool};
///
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() < 2 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = pool::join(|| sum(left), || sum(right));
///     left + right
/// }
///
/// let pool = Pool::new(2)?;
/// let numbers: Vec<_> = (0..1000).collect();
/// assert_eq!(pool.run(|| sum(&numbers)), 499_500);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A second closure becomes a task only if a worker is idle, and at most once per beat (five times
/// the cost of waking a thread). Of the closures that are forked and not begun, the oldest is
/// chosen, which is usually the largest. So work that takes less than a beat runs on its own worker
/// and wakes no thread. If the caller is not a worker, it runs both closures.
///
/// While it waits for the second closure, the worker runs other tasks of its pool.
///
/// # Panics
///
/// If a closure panics, with its payload, once both are done; or if the second closure was dropped
/// before it began.
#[inline]
pub fn join<A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    fork::join::<Forking, _, _, _, _>(first, second)
}

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Runs `work` on a worker, blocks until it is done, and returns its result. If the caller is a
    /// worker of the pool, or there is no room, the caller runs `work` itself; in the latter case
    /// closures that `work` [`join`]s also run on the caller.
    ///
    /// # Panics
    ///
    /// If `work` panics, with its payload.
    #[track_caller]
    pub fn run<F, T>(&self, work: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        if ask(&self.shared.crew, |here| here.is_some()) {
            return work();
        }
        // SAFETY: the task is always waited for: nothing here panics before that.
        let (task, mut handle) =
            unsafe { Task::borrowing_new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work))) };
        self.shared.spawn(task, Location::caller(), Put::PLAIN);
        wait_for(&handle.awaited());
        match handle.take() {
            Some(Ok(returned)) => returned,
            Some(Err(panic)) => resume_unwind(panic),
            None => panic!("the pool's policy has panicked, and the task is lost"),
        }
    }
}
