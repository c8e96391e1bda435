//! A fiber that is timed, as its own code sees it: it looks at the clock where it is suspended, and
//! where it goes on.

use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;

use super::super::clocked::{Clocked, WANTED};
use super::super::control::{Fiber, Said};
use super::super::current::current_fiber;
use super::below::below;

/// The fiber is timed until this is dropped.
pub(crate) struct Attached<'a>(Option<Fiber>, &'a Clocked);

impl Clocked {
    /// Times the calling fiber, if the caller is one, and is not timed already.
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

/// Whether the calling fiber looks at the clock as it is suspended now. If not, a yield is left to
/// the caller's own code, and nothing is to be done when the fiber goes on; after a wait, call
/// [`has_gone_on`].
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
        // Relaxed: published by the commit of its sleep, which the thread that lets it go on
        // acquires.
        fiber.get().woken_ns.store(WANTED, Relaxed);
    }
    // SAFETY: the caller's: it is on the fiber's stack, and attached.
    unsafe { clocked.as_ref() }.is_due(waits, below())
}

/// The calling fiber is suspended, and looks at the clock before and afterwards.
///
/// # Safety
///
/// The conditions of [`Fiber::leave`]; and `clocked` is the fiber's own.
#[cold]
#[inline(never)]
pub(in crate::fiber) unsafe fn leave(fiber: Fiber, clocked: NonNull<Clocked>, said: Said) {
    // SAFETY: the caller's: it is on the fiber's stack, and attached.
    let clocked = unsafe { clocked.as_ref() };
    let waits = matches!(said, Said::Sleeps);
    let host = below().expect("a fiber has one");
    clocked.stops(waits, host);
    // SAFETY: the caller's.
    unsafe { fiber.leave(said) };
    clocked.goes_on(waits, host);
}

/// The calling fiber has waited, and had not looked at the clock before.
///
/// # Safety
///
/// The fiber is timed, by `clocked`.
#[inline]
pub(in crate::fiber) unsafe fn has_gone_on(clocked: NonNull<Clocked>) {
    // SAFETY: the caller's: it is on the fiber's stack, and attached.
    let clocked = unsafe { clocked.as_ref() };
    if clocked.is_cut() {
        clocked.goes_on(true, below().expect("a fiber has one"));
    }
}
