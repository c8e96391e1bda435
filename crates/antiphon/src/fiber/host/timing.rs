//! The part of a timed fiber's accounting that runs on the fiber: it looks at the clock when it is
//! suspended, and when it continues.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use super::super::clocked::{Clocked, WANTED};
use super::super::control::{Fiber, Said};
use super::super::current::current_fiber;
use super::below::below;

/// Keeps the fiber timed until dropped.
pub(crate) struct Attached<'a>(Option<Fiber>, &'a Clocked);

impl Clocked {
    /// Times the calling fiber, if the caller is a fiber and is not timed already.
    pub(crate) fn attach(&self) -> Attached<'_> {
        let fiber = current_fiber().filter(|fiber| fiber.get().clocked.get().is_none());
        if let Some(fiber) = fiber {
            self.is_fiber();
            fiber.get().clocked.set(Some(NonNull::from(self)));
        }
        Attached(fiber, self)
    }
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        if let Some(fiber) = self.0 {
            if self.1.is_noted() {
                below().expect("a fiber has one").forget(fiber);
            }
            fiber.get().clocked.set(None);
            self.1.ends(below());
        }
    }
}

/// Returns whether the calling fiber, which is about to be suspended, must look at the clock. If
/// not, the caller itself suspends the fiber; after a yield nothing more is needed, after a wait,
/// call [`has_gone_on`].
///
/// # Safety
///
/// The fiber is timed, by `clocked`.
#[inline(never)]
pub(in crate::fiber) unsafe fn is_told(
    fiber: Fiber,
    clocked: NonNull<Clocked>,
    said: Said,
) -> bool {
    let waits = matches!(said, Said::Sleeps);
    if waits {
        // Relaxed: published by the commit of its sleep, which the waking thread acquires.
        fiber.get().woken_ns.store(WANTED, Relaxed);
    }
    // SAFETY: promised by the caller: it is on the fiber's stack, and attached.
    unsafe { clocked.as_ref() }.is_due(waits, below())
}

/// Suspends the calling fiber, and looks at the clock before and afterwards.
///
/// # Safety
///
/// The conditions of [`Fiber::leave`]; and `clocked` is the fiber's own.
#[cold]
#[inline(never)]
pub(in crate::fiber) unsafe fn leave(fiber: Fiber, clocked: NonNull<Clocked>, said: Said) {
    // SAFETY: promised by the caller: it is on the fiber's stack, and attached.
    let clocked = unsafe { clocked.as_ref() };
    let waits = matches!(said, Said::Sleeps);
    let host = below().expect("a fiber has one");
    clocked.stops(waits, host);
    // SAFETY: promised by the caller.
    unsafe { fiber.leave(said) };
    clocked.goes_on(waits, host);
}

/// Called after a wait of the calling fiber before which it did not look at the clock.
///
/// # Safety
///
/// The fiber is timed, by `clocked`.
#[inline]
pub(in crate::fiber) unsafe fn has_gone_on(clocked: NonNull<Clocked>) {
    // SAFETY: promised by the caller: it is on the fiber's stack, and attached.
    let clocked = unsafe { clocked.as_ref() };
    if clocked.is_cut() {
        clocked.goes_on(true, below().expect("a fiber has one"));
    }
}
