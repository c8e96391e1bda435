//! Waiters that are polled instead of parked.

use core::task::Waker;

use crate::{Platform, Waiter};

/// A machine on which futures can wait, too: they leave a waker with a node instead of calling
/// [`park`](Platform::park). Separate from [`Platform`], because leaving a waker allocates, and not
/// every machine has executors.
pub trait PolledWait: Platform {
    /// Leaves a waker with a node: the next thread that [unparks](Platform::unpark) the node wakes
    /// it, once. Returns `false` if a wake was pending: the call has consumed that wake, and the
    /// caller checks its condition again. Everything before a wake happens before the return of the
    /// call that consumes it, this one or [`take_waker`](Self::take_waker).
    ///
    /// # Safety
    ///
    /// The node comes from the arena and belongs to the caller, which neither parks on it nor gives
    /// it back before it has [taken the waker back](Self::take_waker).
    unsafe fn leave_waker(waiter: &Waiter<Self>, waker: Waker) -> bool;

    /// Takes back the waker, if it is still there, and consumes a pending wake, if there is one.
    ///
    /// # Safety
    ///
    /// The node belongs to the caller, which has left a waker, or nothing, and does not park.
    unsafe fn take_waker(waiter: &Waiter<Self>);
}
