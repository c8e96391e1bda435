//! Waiters that are polled, and not parked.

use core::task::Waker;

use crate::{Platform, Waiter};

/// A machine on which futures wait, too: by a waker that is left with a node, in the place of a
/// [`park`](Platform::park). Apart from [`Platform`]: a caller that leaves a waker allocates, and
/// not every machine has executors.
pub trait PolledWait: Platform {
    /// Leaves a waker with a node: the thread that [unparks](Platform::unpark) it next wakes it,
    /// once. `false`: a wake was due; it is taken, and the caller looks again at what it waits for.
    /// What was done before a wake happens before what is done when one was taken, here or by
    /// [`take_waker`](Self::take_waker).
    ///
    /// # Safety
    ///
    /// The node is one of the arena's, and the caller's; it is not parked on, nor given back,
    /// before the waker was [taken back](Self::take_waker).
    unsafe fn leave_waker(waiter: &Waiter<Self>, waker: Waker) -> bool;

    /// Takes back the waker that was left, if it is there still, and a wake, if one is due.
    ///
    /// # Safety
    ///
    /// The node belongs to the caller, which has left a waker, or nothing, and does not park.
    unsafe fn take_waker(waiter: &Waiter<Self>);
}
