//! The handle of a task, which waits for the task's result.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread;

use antiphon_linux::Linux;
use antiphon_runtime::select::Awaits;
use antiphon_runtime::task::Handle;

use crate::select::{And, Select, Then};
use crate::worker::wait_for;

/// Waits for a task and returns its result. If the handle is dropped, the task still runs.
pub struct JoinHandle<T>(pub(super) Handle<Linux, thread::Result<T>>);

type Joins<'a, T> = Awaits<'a, Linux, thread::Result<T>>;

impl<T> JoinHandle<T> {
    /// Blocks until the task is done, and returns its result. A worker, of this pool or of another,
    /// runs other tasks of its own pool while it waits.
    ///
    /// # Errors
    ///
    /// The payload of the task's panic.
    pub fn join(mut self) -> thread::Result<T> {
        wait_for(&self.0.awaited());
        or_lost(self.0.take())
    }

    /// Returns whether the task is done, so that [`join`](Self::join) would not block.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_done()
    }
}

/// The result of a task, or an error if the task was dropped.
fn or_lost<T>(returned: Option<thread::Result<T>>) -> thread::Result<T> {
    returned.unwrap_or_else(|| Err(Box::new("the task was dropped") as Box<dyn Any + Send>))
}

/// Resolves to the result of the task, or the payload of its panic. Unlike
/// [joining](JoinHandle::join), awaiting does not occupy a worker.
impl<T> Future for JoinHandle<T> {
    type Output = thread::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<thread::Result<T>> {
        Pin::new(&mut self.0).poll(context).map(or_lost)
    }
}

impl<'a, R, C> Select<'a, R, C> {
    /// Adds a case that joins a task. If it is chosen, the closure receives the task's result or
    /// panic, and the handle is used up.
    pub fn join<T, F>(
        self,
        handle: &mut JoinHandle<T>,
        then: F,
    ) -> Select<'a, R, And<C, Joins<'_, T>, F>>
    where
        F: FnOnce(thread::Result<T>) -> R,
    {
        self.and(Awaits::new(&mut handle.0), then)
    }
}

impl<R, T, F> Then<R, F> for Awaits<'_, Linux, thread::Result<T>>
where
    F: FnOnce(thread::Result<T>) -> R,
{
    fn then(self, then: F) -> R {
        then(or_lost(self.into_returned()))
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
