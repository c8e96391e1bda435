//! The fiber that runs on the calling thread, and the thread itself while it rests.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

use antiphon_linux::glance::own_stack;
use antiphon_linux::notify::EventFd;

use super::control::Fiber;
use crate::local;

thread_local! {
    /// The bounds of the thread's stack.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// The event file on which the thread rests, if it does not rest on a word.
    static RESTS: Cell<Option<&'static EventFd>> = const { Cell::new(None) };
}

/// Sets the fiber that runs on the calling thread from now on. HOST-1: a signal handler sees all
/// earlier writes.
#[inline(always)]
pub(super) fn set_current(fiber: Option<Fiber>) {
    compiler_fence(SeqCst);
    local::with(|own| own.fiber.set(fiber.map(Fiber::address)));
    compiler_fence(SeqCst);
}

/// Returns the pool's fiber that the caller runs on, if any.
#[inline(always)]
pub(super) fn current_fiber() -> Option<Fiber> {
    // SAFETY: `set_current` has stored it, and the fiber runs.
    local::with(|own| own.fiber.get()).map(|fiber| unsafe { Fiber::at(fiber) })
}

/// Returns the end of the stack that contains `address`: the stack of the fiber that runs on the
/// calling thread, or the thread's own. 0 if neither contains it. May be called in a signal
/// handler: by FIBER-1 it reads only what belongs to its thread.
pub(crate) fn top_of(address: usize) -> usize {
    let of_fiber = current_fiber().and_then(|fiber| fiber.top_of(address));
    let (low, high) = STACK.get();
    of_fiber.unwrap_or(if (low..high).contains(&address) { high } else { 0 })
}

/// Stores the bounds of the calling thread's stack, so that it can be
/// [looked at](antiphon_linux::glance).
pub(crate) fn show_stack() {
    STACK.set(own_stack().unwrap_or((0, 0)));
}

/// Returns whether the caller is a fiber of a pool of this crate.
pub(crate) fn current_is_ours() -> bool {
    current_fiber().is_some()
}

/// Runs `ask` as the thread under the calling fiber: a wait in `ask` blocks that thread.
#[inline]
pub(crate) fn not_here<R>(own: &local::Thread, ask: impl FnOnce() -> R) -> R {
    let _back = own.fiber.take().map(|fiber| Back(own, fiber));
    ask()
}

/// Runs `rest`, in which the calling thread waits on this bell instead of a word.
pub(super) fn resting<R>(bell: &'static EventFd, rest: impl FnOnce() -> R) -> R {
    struct Over;

    impl Drop for Over {
        fn drop(&mut self) {
            RESTS.set(None);
        }
    }

    RESTS.set(Some(bell));
    let _over = Over;
    rest()
}

/// Returns the bell on which the calling thread rests, if it does.
pub(super) fn rests_by() -> Option<&'static EventFd> {
    RESTS.get()
}

/// Runs `ask`, in which the calling thread does not wait on its bell.
pub(super) fn not_resting(ask: impl FnOnce()) {
    let bell = RESTS.take();
    ask();
    RESTS.set(bell);
}

struct Back<'a>(&'a local::Thread, NonNull<()>);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.fiber.set(Some(self.1));
    }
}
