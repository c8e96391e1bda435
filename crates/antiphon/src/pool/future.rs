//! Futures on the workers of a pool.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use antiphon_linux::Linux;
use antiphon_runtime::sched::{Put, Room};
use antiphon_runtime::task::drive;

use super::blocks::Blocks;
use super::{JoinHandle, Policy, Pool};

impl<Y: Policy<Linux> + 'static> Pool<Y> {
    /// Runs a future on the workers. It is polled as a task, by whichever worker takes it, when it
    /// is spawned and after each wake-up. It is never polled by the thread that wakes it, and never
    /// refused: if the queues are full, room is made.
    ///
    /// ```
    /// use antiphon::pool::Pool;
    ///
    /// let pool = Pool::new(2)?;
    /// let half = pool.spawn(|| 21);
    /// let whole = pool.spawn_future(async { 2 * half.await.unwrap() });
    /// assert_eq!(whole.join().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// A panic of the future is returned by its handle. If the pool is dropped while the future
    /// waits, or nothing is left that could wake it, the future is dropped and its handle returns
    /// an error.
    #[track_caller]
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (shared, caller) = (Arc::downgrade(&self.shared), Location::caller());
        let caught = async move {
            let mut future = pin!(future);
            let poll = |context: &mut Context<'_>| {
                let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
                polled.map_or_else(|panic| Poll::Ready(Err(panic)), |polled| polled.map(Ok))
            };
            poll_fn(poll).await
        };
        JoinHandle(drive(Blocks, caught, move |task| {
            // Otherwise the pool is gone; the task is dropped here, and perhaps the future with it.
            if let Some(shared) = shared.upgrade() {
                shared.spawn(task, caller, Put { room: Room::Make, ..Put::PLAIN });
            }
        }))
    }
}
