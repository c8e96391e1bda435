//! Futures on the workers of a run.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread;

use antiphon_runtime::sched::{Put, Room};
use antiphon_runtime::task::{Heap, drive};

use super::local::guarded;
use super::pool::or_lost;
use super::run::current;
use super::{JoinHandle, Pool};

impl Pool {
    /// Spawns a future. It is polled as a task, by any worker, when it is spawned and each time it
    /// is woken.
    pub fn spawn_future<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let task = self.run().spawn();
        let caught = async move {
            let mut future = pin!(future);
            let poll = |context: &mut Context<'_>| {
                let waker = guarded(context.waker());
                let poll = || future.as_mut().poll(&mut Context::from_waker(&waker));
                match current().perform(task, poll, Poll::is_pending) {
                    Ok(polled) => polled.map(Ok),
                    Err(caught) => Poll::Ready(Err(caught)),
                }
            };
            poll_fn(poll).await
        };
        let handle = drive(Heap, caught, |task| {
            current().put_or_run(task, Put { room: Room::Make, ..Put::PLAIN });
        });
        super::run::linger();
        JoinHandle::new(handle)
    }
}

/// Resolves to the result of the task, or the payload of its panic.
impl<T> Future for JoinHandle<T> {
    type Output = thread::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<thread::Result<T>> {
        Pin::new(self.handle()).poll(context).map(or_lost)
    }
}
