//! A promise: a value that a thread waits for and that no task returns.

use core::fmt;
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, forget};
use core::ptr::NonNull;

use antiphon_platform::Platform;

use super::{AWAITED, Body, End, Handle, Header, Heap, OWED, allocate};

/// The obligation to provide a value for the owner of the [`Handle`]. If it is dropped, there is
/// none.
pub struct Promise<P: Platform, T> {
    header: NonNull<Header<P>>,
    /// Invariant: a value is stored here, and is taken through the handle.
    promised: PhantomData<fn(T) -> T>,
}

/// The allocation of a promise.
type Promised<P, T> = Body<P, fn() -> T, T>;

// SAFETY: its contents are `Send`; the rest are atomics.
unsafe impl<P: Platform, T: Send> Send for Promise<P, T> {}

impl<P: Platform, T: Send + 'static> Promise<P, T> {
    /// Creates a promise, and a handle to wait for its value.
    #[must_use]
    pub fn new() -> (Self, Handle<P, T>) {
        let never: fn() -> T = || unreachable!("a promise is never run as a task");
        // SAFETY: `'static`.
        let header = unsafe { allocate::<P, Heap, _, _>(never, OWED | AWAITED) };
        // SAFETY: the allocation has a slot for `T`, and `AWAITED` is the caller's.
        (Self { header, promised: PhantomData }, unsafe { Handle::new(header) })
    }

    /// Provides the value.
    pub fn fulfil(self, value: T) {
        let end = End { header: self.header, empty: false };
        forget(self);
        let body = end.header.cast::<Promised<P, T>>();
        // SAFETY: TASK-1, the slot is owned here: `new` has made it, of that type, and its contents
        // need no drop.
        unsafe { (*body.as_ref().slot.get()).returned = ManuallyDrop::new(value) };
        drop(end);
    }
}

impl<P: Platform, T> Drop for Promise<P, T> {
    fn drop(&mut self) {
        // The contents of the slot need no drop.
        drop(End { header: self.header, empty: true });
    }
}

impl<P: Platform, T> fmt::Debug for Promise<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Promise")
    }
}
