//! Promises: one side provides a value, the other side waits for it.
//!
//! ```
//! use antiphon::promise;
//!
//! let (promise, awaited) = promise::new();
//! std::thread::spawn(move || promise.fulfil(42));
//! assert_eq!(awaited.wait(), Ok(42));
//! // The promise is dropped without a value.
//! let (promise, awaited) = promise::new::<u32>();
//! drop(promise);
//! assert_eq!(awaited.wait(), Err(promise::Broken));
//! ```
//!
//! A promise is fulfilled once, and has one waiter: a thread, which sleeps; a
//! [fiber](crate::fiber), which is suspended; or a future, which is woken. A worker of a
//! [pool](crate::pool) runs other tasks meanwhile, as when it joins a task. If the waiting side was
//! dropped, the value is dropped, too.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::select::{Awaits, Source, Stand};
use antiphon_runtime::task;
use antiphon_sync::wait::Several;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;
use crate::debug::by_name;
use crate::select::{And, Select, Then};
use crate::worker::wait_for;

/// The side that provides the value. If it is dropped, the waiter gets [`Broken`].
#[must_use = "a promise that is dropped is broken: fulfil it"]
pub struct Promise<T: Send + 'static>(task::Promise<Linux, T>);

/// The side that waits for the value. If it is dropped, the value will be dropped when it is
/// provided.
#[must_use = "the promised value is not waited for: join it"]
pub struct Awaited<T>(task::Handle<Linux, T>);

/// The error of a wait whose promise was dropped without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Creates a promise, and the side that waits for it.
pub fn new<T: Send + 'static>() -> (Promise<T>, Awaited<T>) {
    let (promise, handle) = task::Promise::new();
    (Promise(promise), Awaited(handle))
}

impl<T: Send + 'static> Promise<T> {
    /// Provides the value. Does not block.
    pub fn fulfil(self, value: T) {
        self.0.fulfil(value);
    }
}

impl<T> Awaited<T> {
    /// Waits for the value. Blocks until the promise is fulfilled or dropped.
    ///
    /// # Errors
    ///
    /// If the promise was dropped.
    pub fn wait(mut self) -> Result<T, Broken> {
        wait_for(&self.0.awaited());
        self.0.take().ok_or(Broken)
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. A worker runs no other tasks
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// `self`, to wait again, if the value did not come in time.
    pub fn wait_for(mut self, timeout: Duration) -> Result<Result<T, Broken>, Self> {
        may_be_ready();
        self.0.awaited().wait_until(Some(deadline_after(timeout)));
        if self.is_ready() { Ok(self.wait()) } else { Err(self) }
    }

    /// Returns whether the promise was fulfilled or dropped: then [`wait`](Self::wait) does not
    /// block.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.is_done()
    }

    /// Returns the representation, for the C API.
    #[doc(hidden)]
    pub fn handle(&mut self) -> &mut task::Handle<Linux, T> {
        &mut self.0
    }
}

/// Resolves to the value, or to [`Broken`] if the promise was dropped.
impl<T> Future for Awaited<T> {
    type Output = Result<T, Broken>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|value| value.ok_or(Broken))
    }
}

impl<'a, R, C> Select<'a, R, C> {
    /// Adds a case that waits for a promise. If it is chosen, the closure receives the value or the
    /// error, and `awaited` is used up.
    pub fn promise<T, F>(
        self,
        awaited: &mut Awaited<T>,
        then: F,
    ) -> Select<'a, R, And<C, Promised<'_, T>, F>>
    where
        F: FnOnce(Result<T, Broken>) -> R,
    {
        self.and(Promised(Awaits::new(&mut awaited.0)), then)
    }
}

/// A promise as the case of a [`Select`].
#[derive(Debug)]
pub struct Promised<'a, T>(Awaits<'a, Linux, T>);

impl<T> Source<Linux> for Promised<'_, T> {
    fn try_take(&self) -> bool {
        self.0.try_take()
    }

    fn stand<'a>(&'a self, several: &'a Several<Linux>) -> Option<Stand<'a, Linux>> {
        self.0.stand(several)
    }
}

impl<R, T, F: FnOnce(Result<T, Broken>) -> R> Then<R, F> for Promised<'_, T> {
    fn then(self, then: F) -> R {
        then(self.0.into_returned().ok_or(Broken))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the promise was dropped before it was fulfilled")
    }
}

impl Error for Broken {}

by_name!([T: Send + 'static] Promise<T>, "Promise");

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").field("is_ready", &self.is_ready()).finish()
    }
}
