//! Futures as waiters: a waker in a box, which the node's `handle` names.
//!
//! ```text
//!   future                                     a waker of it, anywhere
//!   ──────                                     ───────────────────────
//!   box in `handle`, token EMPTY → WAKER
//!   returns Pending                            unpark: token → DUE, was WAKER
//!                                              takes the box out of `handle`, wakes
//!   is polled: takes the box, if it is there
//!   token → EMPTY, looks, leaves another box
//! ```
//!
//! - POLLED-1: a box belongs to the thread that takes its address out of `handle`, by an exchange.
//! - POLLED-2 (no lost wake): the thread that takes it wakes it, or is the future itself, which
//!   looks at what it waits for after it has taken the wakes that were due.
//! - POLLED-3: an unparking thread may be late, and find what the node has next. It takes no more
//!   than a box, which the highest bit tells from the handle of a fiber; a box of another wait it
//!   wakes for no reason.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::task::Waker;

use antiphon_platform::{Atomic, PolledWait, Waiter};

use crate::Linux;
use crate::park::left;

/// The bit of a handle that says that it is the address of a box. Handles of fibers are below that.
const BOX: u64 = 1 << 63;

impl PolledWait for Linux {
    unsafe fn leave_waker(waiter: &Waiter<Linux>, waker: Waker) -> bool {
        let address = Box::into_raw(Box::new(waker)).expose_provenance() as u64;
        // Release: the box; pairs with the acquire in `take`.
        waiter.handle.store(address | BOX, Release);
        let left = left::commit(waiter);
        if !left {
            drop(take(waiter));
        }
        left
    }

    unsafe fn take_waker(waiter: &Waiter<Linux>) {
        let taken = take(waiter);
        left::end(waiter);
        // Last: what it drops may do anything.
        drop(taken);
    }
}

/// POLLED-1: the waker that was left, if it is there still.
fn take(node: &Waiter<Linux>) -> Option<Box<Waker>> {
    // Relaxed: the exchange decides.
    let handle = node.handle.load(Relaxed);
    if handle & BOX == 0 {
        return None;
    }
    // Acquire: the box; pairs with the release in `leave_waker`. An exchange that fails has another
    // now: the box was taken, and the future that has left a new one does look again (POLLED-2).
    node.handle.compare_exchange(handle, 0, Acquire, Relaxed).ok()?;
    let address = (handle & !BOX) as usize;
    // SAFETY: POLLED-1.
    Some(unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut(address)) })
}

/// Wakes the future that has left a waker here. If that unwinds the process is aborted: others wait
/// for their wake-up.
#[cold]
pub(crate) fn wake(node: &Waiter<Linux>) {
    struct Unwound;

    impl Drop for Unwound {
        fn drop(&mut self) {
            std::process::abort();
        }
    }

    if let Some(waker) = take(node) {
        let unwound = Unwound;
        waker.wake();
        core::mem::forget(unwound);
    }
}
