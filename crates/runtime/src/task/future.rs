//! Futures that tasks drive: each time a future is woken, a task polls it.
//!
//! | `state` | meaning |
//! |---|---|
//! | `WOKEN` | the future was woken, and not polled after that |
//! | `RUNS` | a task is polling it, or it is done |
//!
//! ```text
//!              wake                    poll
//!   ┌───────┐ ──────► ┌─────────────┐ ──────► ┌──────┐  wake   ┌──────────────┐
//!   │ waits │         │ WOKEN: task │         │ RUNS │ ──────► │ RUNS | WOKEN │
//!   └───────┘ ◄────────────────────────────── └──────┘         └──────────────┘
//!                        pending               ready: stays      pending: task
//! ```
//!
//! - FUTURE-1: only the thread that moves the state from 0, or has polled and finds the future
//!   woken, makes a task of it. So one thread at a time polls it.
//! - FUTURE-2: a poll after a wake sees the accesses before the wake.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::cell::UnsafeCell;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::task::{Context, Poll, Waker};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use super::{Handle, Memory, Promise, Task};

const WOKEN: u32 = 1;
const RUNS: u32 = 2;

/// Makes tasks drive the future. `put` submits the tasks, which must be run later; any thread may
/// run them. Nothing is polled here. The handle returns the future's output; or `None`, if a poll
/// has panicked, or all wakers were dropped. The tasks are in `M`, one at a time.
pub fn drive<P, M, F, S>(memory: M, future: F, put: S) -> Handle<P, F::Output>
where
    P: Platform,
    M: Memory + Copy + Send + Sync,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Fn(Task<P>) + Send + Sync + 'static,
{
    let (promise, handle) = Promise::new();
    let rest = UnsafeCell::new(Rest { future: Some(future), promise: Some(promise) });
    Arc::new(Driven { state: P::U32::ZERO, put, rest, memory }).wake();
    handle
}

struct Driven<P: Platform, M, F: Future, S> {
    state: P::U32,
    put: S,
    rest: UnsafeCell<Rest<P, F>>,
    memory: M,
}

/// The part that belongs to the thread that moved the state to `RUNS`.
struct Rest<P: Platform, F: Future> {
    /// Pinned: the future stays in place until it is dropped there.
    future: Option<F>,
    promise: Option<Promise<P, F::Output>>,
}

// SAFETY: one thread at a time uses `rest` (FUTURE-1), and its contents are `Send`.
unsafe impl<P, M, F, S> Sync for Driven<P, M, F, S>
where
    P: Platform,
    M: Sync,
    F: Future + Send,
    F::Output: Send,
    S: Sync,
{
}

impl<P, M, F, S> Wake for Driven<P, M, F, S>
where
    P: Platform,
    M: Memory + Copy + Send + Sync,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Fn(Task<P>) + Send + Sync + 'static,
{
    fn wake(self: Arc<Self>) {
        // Release: FUTURE-2; pairs with the acquire in `poll`.
        if self.state.fetch_or(WOKEN, Release) == 0 {
            self.put();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.clone().wake();
    }
}

impl<P, M, F, S> Driven<P, M, F, S>
where
    P: Platform,
    M: Memory + Copy + Send + Sync,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Fn(Task<P>) + Send + Sync + 'static,
{
    /// FUTURE-1: makes a task of the future; only one caller does so at a time.
    fn put(self: Arc<Self>) {
        let driven = self.clone();
        (self.put)(Task::detached_in(self.memory, move || driven.poll()));
    }

    fn poll(self: Arc<Self>) {
        // Acquire: FUTURE-2, and the accesses of the last poll; pairs with the releases in `wake`
        // and below.
        self.state.swap(RUNS, Acquire);
        let waker = Waker::from(self.clone());
        // SAFETY: FUTURE-1.
        let mut polled = Polled { rest: unsafe { &mut *self.rest.get() }, waits: false };
        if let Some(future) = &mut polled.rest.future {
            // SAFETY: the future is in the `Arc`, and is dropped there.
            let future = unsafe { Pin::new_unchecked(future) };
            match future.poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(returned) => return polled.end(returned),
                Poll::Pending => polled.waits = true,
            }
        }
        drop(polled);
        // Release: the accesses of this poll; pairs with the acquire above.
        if self.state.fetch_and(!RUNS, Release) & WOKEN != 0 {
            self.put();
        }
    }
}

/// A poll: if the future is not pending afterwards, it and the promise are dropped with this.
struct Polled<'a, P: Platform, F: Future> {
    rest: &'a mut Rest<P, F>,
    waits: bool,
}

impl<P: Platform, F: Future> Polled<'_, P, F>
where
    F::Output: Send + 'static,
{
    /// Called when the future is done.
    fn end(self, returned: F::Output) {
        // Dropped first, so that a woken waiter finds that the future is gone.
        self.rest.future = None;
        if let Some(promise) = self.rest.promise.take() {
            promise.fulfil(returned);
        }
    }
}

impl<P: Platform, F: Future> Drop for Polled<'_, P, F> {
    fn drop(&mut self) {
        if !self.waits {
            *self.rest = Rest { future: None, promise: None };
        }
    }
}
