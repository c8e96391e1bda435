//! Fork and join on the workers of a pool.

use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

use antiphon_linux::Linux;
use antiphon_runtime::fork;
use antiphon_runtime::task::Task;

use super::blocks::Blocks;
use super::here::{Forking, ask, wait_for};
use super::{Policy, Pool};

/// Runs both closures, the second perhaps on another worker of the pool meanwhile, and returns what
/// they return. It costs a few nanoseconds: fork as finely as you like.
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
/// The second becomes a task once a beat (five times what it costs to wake a thread) at most, and
/// only where a worker has nothing to do: of those that are forked and not begun the oldest, which
/// is as a rule the largest. So what takes less than a beat is run where it is, and wakes nobody.
/// On a thread that is no worker both are run here.
///
/// While it waits for the second the worker runs other tasks of its pool.
///
/// # Panics
///
/// If one of them panics, with that, when both are done; or the second was dropped, not begun.
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
    /// Has a worker run `work`, and waits for what it returns: here, if this is a worker of the
    /// pool. If there is no room, here too; then what it [`join`]s is run here.
    ///
    /// # Panics
    ///
    /// If `work` panics, with that.
    #[track_caller]
    pub fn run<F, T>(&self, work: F) -> T
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        if ask(&self.shared.crew, |here| here.is_some()) {
            return work();
        }
        // SAFETY: it is waited for, whatever happens: nothing here panics before that.
        let (task, mut handle) =
            unsafe { Task::borrowing_new_in(Blocks, move || catch_unwind(AssertUnwindSafe(work))) };
        self.shared.put_or_run(task, Location::caller());
        wait_for(&handle.awaited());
        match handle.take() {
            Some(Ok(returned)) => returned,
            Some(Err(panic)) => resume_unwind(panic),
            None => panic!("the pool's policy has panicked, and with it went the task"),
        }
    }
}
