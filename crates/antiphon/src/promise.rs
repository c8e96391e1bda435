//! Promises: a value that somebody comes up with, and somebody else waits for.
//!
//! ```
//! use antiphon::promise;
//!
//! let (promise, awaited) = promise::new();
//! std::thread::spawn(move || promise.fulfil(42));
//! assert_eq!(awaited.wait(), Ok(42));
//! // Nobody has it any more.
//! let (promise, awaited) = promise::new::<u32>();
//! drop(promise);
//! assert_eq!(awaited.wait(), Err(promise::Broken));
//! ```
//!
//! It is fulfilled once, and waited for by one: a thread, which sleeps, a [fiber](crate::fiber),
//! which is suspended, or a future, which is woken. A worker of a [`pool`] runs other
//! tasks meanwhile, as where it joins one. A value that nobody waits for any more is dropped.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::task;

use crate::fiber::may_be_ready;
use crate::pool;
use crate::raw::deadline_after;

/// The duty to come up with a value. Dropped, who waits for that is told.
#[must_use = "dropped, it is broken"]
pub struct Promise<T: Send + 'static>(task::Promise<Linux, T>);

/// What to wait for the value by. Dropped, the value will be, too.
#[must_use = "somebody comes up with a value"]
pub struct Awaited<T>(task::Handle<Linux, T>);

/// The promise was dropped, and there will be no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// A promise, and what to wait for it by.
pub fn new<T: Send + 'static>() -> (Promise<T>, Awaited<T>) {
    let (promise, handle) = task::Promise::new();
    (Promise(promise), Awaited(handle))
}

impl<T: Send + 'static> Promise<T> {
    /// Comes up with the value. Does not block.
    pub fn fulfil(self, value: T) {
        self.0.fulfil(value);
    }
}

impl<T> Awaited<T> {
    /// Waits for the value. Blocks until it is there, or never will be.
    ///
    /// # Errors
    ///
    /// If the promise was dropped.
    pub fn wait(mut self) -> Result<T, Broken> {
        pool::wait_for(&self.0.awaited());
        self.0.take().ok_or(Broken)
    }

    /// As [`wait`](Self::wait), and no longer than that; a worker runs no other tasks.
    ///
    /// # Errors
    ///
    /// If it is not there until then: this, to wait on.
    pub fn wait_for(mut self, timeout: Duration) -> Result<Result<T, Broken>, Self> {
        may_be_ready();
        self.0.awaited().wait_until(Some(deadline_after(timeout)));
        if self.is_ready() { Ok(self.wait()) } else { Err(self) }
    }

    /// Whether the value is there, or never will be: [`wait`](Self::wait) does not block then.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.is_done()
    }

    /// What it is made of, for the C API.
    #[doc(hidden)]
    pub fn handle(&mut self) -> &mut task::Handle<Linux, T> {
        &mut self.0
    }
}

/// The value, or that the promise was dropped.
impl<T> Future for Awaited<T> {
    type Output = Result<T, Broken>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|value| value.ok_or(Broken))
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the promise was dropped before it was fulfilled")
    }
}

impl Error for Broken {}

impl<T: Send + 'static> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Promise")
    }
}

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").field("is_ready", &self.is_ready()).finish()
    }
}
