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
    /// The file by which the thread rests, if not by a word.
    static RESTS: Cell<Option<&'static EventFd>> = const { Cell::new(None) };
}

/// Sets the fiber that runs on the calling thread from now on. HOST-1: a signal handler sees all
/// writes from before.
#[inline(always)]
pub(super) fn set_current(fiber: Option<Fiber>) {
    compiler_fence(SeqCst);
    local::with(|own| own.fiber.set(fiber.map(Fiber::address)));
    compiler_fence(SeqCst);
}

/// The fiber that the caller is.
#[inline(always)]
pub(super) fn current_fiber() -> Option<Fiber> {
    // SAFETY: `set_current` has put it there, and it runs.
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

/// The calling thread may be [looked at](antiphon_linux::glance).
pub(crate) fn show_stack() {
    STACK.set(own_stack().unwrap_or((0, 0)));
}

/// Whether the caller is a fiber of ours.
pub(crate) fn current_is_ours() -> bool {
    current_fiber().is_some()
}

/// Runs `ask` as the thread under the calling fiber: a wait in it is a wait of that thread.
#[inline]
pub(crate) fn not_here<R>(own: &local::Thread, ask: impl FnOnce() -> R) -> R {
    let _back = own.fiber.take().map(|fiber| Back(own, fiber));
    ask()
}

/// Runs `rest`, in which the calling thread waits as a fiber would, by this bell.
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

/// The bell by which the calling thread rests, if it does.
pub(super) fn rests_by() -> Option<&'static EventFd> {
    RESTS.get()
}

/// Runs `ask`, in which a wait of the calling thread is not by its bell.
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
