//! Futures as waiters: a waker in a box, which the node's `handle` names.
//!
//! ```text
//!   future                                     a waker of it, anywhere
//!   ──────                                     ───────────────────────
//!   box in `handle`, token EMPTY → WAKER
//!   returns Pending                            unpark: token → DUE, was WAKER
//!                                              takes the box out of `handle`, wakes
//!   is polled: takes the box, if still there
//!   token → EMPTY, checks, leaves another box
//! ```
//!
//! - POLLED-1: a box belongs to the thread that takes its address out of `handle`, by an exchange.
//! - POLLED-2 (no lost wake): the thread that takes the box wakes the future, or is the future
//!   itself, which checks its condition after it has consumed the pending wakes.
//! - POLLED-3: an unparking thread may be late, and find the node's next content. It takes only a
//!   box, which the highest bit distinguishes from the handle of a fiber; for the box of another
//!   wait, the wake is spurious.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::task::Waker;

use antiphon_platform::{Atomic, PolledWait, Waiter};

use crate::Linux;
use crate::park::left;

/// The bit that marks a handle as the address of a box. Handles of fibers are below it.
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
        // Dropped last: the drop may run arbitrary code.
        drop(taken);
    }
}

/// POLLED-1: takes the waker that was left, if it is still there.
fn take(node: &Waiter<Linux>) -> Option<Box<Waker>> {
    // Relaxed: the exchange decides.
    let handle = node.handle.load(Relaxed);
    if handle & BOX == 0 {
        return None;
    }
    // Acquire: the box; pairs with the release in `leave_waker`. If the exchange fails, the box was
    // taken, and the future that has left a new one checks its condition again (POLLED-2).
    node.handle.compare_exchange(handle, 0, Acquire, Relaxed).ok()?;
    let address = (handle & !BOX) as usize;
    // SAFETY: POLLED-1: the exchange gave this thread the box.
    Some(unsafe { Box::from_raw(core::ptr::with_exposed_provenance_mut(address)) })
}

/// Wakes the future that has left a waker here. If that unwinds, aborts the process, because other
/// waiters still need their wakes.
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
