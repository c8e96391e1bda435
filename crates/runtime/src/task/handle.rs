//! The waiting end of a task: for the thread that takes its result.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::pin::Pin;
use core::ptr::NonNull;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::task::{Context, Poll, Waker};

use antiphon_platform::{Atomic, AtomicInteger, Platform, Ticket};

use super::{AWAITED, Act, Awaited, DONE, EMPTY, Header, OWED, POLLED, WATCHED, free, take_waker};

/// A handle to wait for a task, and to take its result. If it is dropped, the task goes on.
pub struct Handle<P: Platform, T> {
    header: NonNull<Header<P>>,
    returned: PhantomData<T>,
}

// SAFETY: it hands out the `T`, which is `Send`; the rest are atomics.
unsafe impl<P: Platform, T: Send> Send for Handle<P, T> {}
// SAFETY: a shared reference only shows whether the task is done.
unsafe impl<P: Platform, T: Send> Sync for Handle<P, T> {}

impl<P: Platform, T> Handle<P, T> {
    /// # Safety
    ///
    /// `AWAITED` of this task, which returns `T`, is the caller's.
    pub(super) unsafe fn new(header: NonNull<Header<P>>) -> Self {
        Self { header, returned: PhantomData }
    }

    fn header(&self) -> &Header<P> {
        // SAFETY: not freed while `AWAITED` is set.
        unsafe { self.header.as_ref() }
    }

    /// Returns whether the task was run, or dropped.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // Acquire: TASK-1; pairs with the release of the thread that has run the task.
        self.header().state.load(Acquire) & DONE != 0
    }

    /// Returns the event that the task is done; afterwards [`take`](Self::take) does not block.
    pub fn awaited(&mut self) -> Awaited<'_, P> {
        self.unhook();
        self.awaited_shared()
    }

    /// Like [`awaited`](Self::awaited), for a handle that has left no waker, and that no other
    /// thread waits through.
    pub(crate) fn awaited_shared(&self) -> Awaited<'_, P> {
        let Header { state, bell, .. } = self.header();
        Awaited { word: state, lasts: |state| state & DONE == 0, bell, watched: WATCHED, own: None }
    }

    /// Returns the result of the task; `None` if it has panicked, or was dropped. Blocks until the
    /// task is done.
    #[must_use]
    pub fn take(mut self) -> Option<T> {
        self.awaited().wait();
        self.take_now()
    }

    /// Returns the result, once the task is done.
    fn take_now(&mut self) -> Option<T> {
        // SAFETY: `&mut self` is exclusive.
        unsafe { self.take_shared() }
    }

    /// Like `take_now`, but through a shared reference.
    ///
    /// # Safety
    ///
    /// No other thread uses the handle meanwhile.
    pub(crate) unsafe fn take_shared(&self) -> Option<T> {
        let state = &self.header().state;
        // Relaxed, below: `drop` releases it. Acquire: TASK-1, also for `hook`, and TASK-2; pairs
        // with the releases in the end of the task.
        match state.load(Acquire) {
            seen if seen & EMPTY != 0 => return None,
            seen if seen & OWED == 0 => state.store(seen | EMPTY, Relaxed),
            _ => _ = state.fetch_or(EMPTY, Relaxed),
        }
        let mut returned = MaybeUninit::<T>::uninit();
        let into = NonNull::from(&mut returned).cast();
        // SAFETY: TASK-1, the slot belongs to the handle, and was not empty.
        unsafe { (self.header().act)(self.header, Act::Take { into }) };
        // SAFETY: written by `act`.
        Some(unsafe { returned.assume_init() })
    }
}

impl<P: Platform, T> Handle<P, T> {
    /// Leaves a waker, which is woken when the task is done; `false` if it is done already.
    fn hook(&mut self, waker: &Waker) -> bool {
        let Header { state, bell, .. } = self.header();
        // Relaxed: only the handle sets it.
        if state.load(Relaxed) & POLLED == 0 {
            // A wait that was forgotten has left its ticket, which is not a waker.
            bell.disarm();
        }
        // Release: TASK-4, no sleeper is left; pairs with the fence in `Bell::take` at the end of
        // the task. What the task has done is acquired when the result is taken.
        // mutant: no model abandons a wait, so there is never a sleeper's ticket.
        if state.fetch_or(POLLED, Release) & DONE != 0 {
            return false;
        }
        // The waker of the last poll, if it wakes the same task.
        let left = take_waker(bell).filter(|left| left.will_wake(waker));
        let left = Box::into_raw(left.unwrap_or_else(|| Box::new(waker.clone())));
        let ticket = Ticket::new(left.expose_provenance() as u64);
        bell.arm(ticket.expect("an address of something"));
        // Relaxed: TASK-3 by the fence in `arm`; TASK-1 as above.
        let done = state.load(Relaxed) & DONE != 0;
        if done {
            drop(take_waker(bell));
        }
        !done
    }

    /// Takes back the waker, if one was left.
    pub(crate) fn unhook(&mut self) {
        let Header { state, bell, .. } = self.header();
        // Relaxed: only the handle sets it.
        if state.load(Relaxed) & POLLED != 0 {
            drop(take_waker(bell));
            // Release: TASK-4, no waker is left; pairs with the fence in `Bell::take` at the end of
            // the task.
            // mutant: the end takes a ticket by an exchange. That it comes before the exchange
            // above, and after this, is load buffering: C11 allows it, the checker does not.
            state.fetch_and(!POLLED, Release);
        }
    }
}

/// Resolves to the result of the task; `None` if it has panicked, or was dropped.
impl<P: Platform, T> Future for Handle<P, T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if self.hook(context.waker()) { Poll::Pending } else { Poll::Ready(self.take_now()) }
    }
}

impl<P: Platform, T> Unpin for Handle<P, T> {}

impl<P: Platform, T> Drop for Handle<P, T> {
    fn drop(&mut self) {
        self.unhook();
        if self.is_done() {
            // Dropped here, and not by the thread that has run the task: after this returns, its
            // borrows may end.
            drop(self.take_now());
        }
        let state = &self.header().state;
        // Acquire: TASK-2, the task's last accesses; pairs with the releases in its end.
        let is_last = state.load(Acquire) & OWED == 0;
        // Release: the handle's accesses; pairs with the acquires there. Acquire: as above.
        if is_last || state.fetch_and(!AWAITED, AcqRel) & OWED == 0 {
            // SAFETY: TASK-2.
            unsafe { free(self.header) };
        }
    }
}

impl<P: Platform, T> fmt::Debug for Handle<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}
