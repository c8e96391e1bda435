//! The host below the running fiber, and waits in which the thread itself takes part.

use std::ptr;
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

use antiphon_linux::fiber::Sleep;
use antiphon_platform::{Clock, Deadline};

use super::super::control::Fiber;
use super::super::current;
use super::{Host, monotonic_ns, now};
use crate::local;

/// Returns the host that the calling fiber runs on.
pub(in crate::fiber) fn below<'a>() -> Option<&'a Host> {
    let host = local::with(|own| own.fiber.get().and(own.host.get()));
    // SAFETY: while a fiber runs, its host is on the thread's stack, and stays there for it.
    host.map(|host| unsafe { host.cast().as_ref() })
}

/// Returns the number of the calling fiber's turn; `None` if the caller is not a fiber.
pub(in crate::fiber) fn turn() -> Option<u32> {
    below().map(Host::turn)
}

/// Returns whether the caller is a fiber that may change its thread.
pub(in crate::fiber) fn may_move() -> bool {
    below().is_some_and(|host| host.moves)
}

/// Returns whether the caller is a fiber and another fiber of its thread may continue. `false` for
/// fibers that move: their queue is shared, and a yield costs as much as a wait.
pub(in crate::fiber) fn has_ready() -> bool {
    below().is_some_and(|host| !host.moves && !host.ready.is_empty())
}

/// Wakes a fiber of the calling thread without notifying the thread, if the caller is another fiber
/// of that thread. Returns `false` if that is not so; or, because of HOST-1, if the caller may be a
/// signal handler that has interrupted a change of the lists, or if it would have to write to the
/// fiber's account, which may be open.
///
/// # Safety
///
/// The handle is that of a fiber which is suspended in a wait; `true` ends the wait.
#[inline]
pub(in crate::fiber) unsafe fn wake_beside(handle: u64) -> bool {
    let Some(host) = below() else { return false };
    // SAFETY: promised by the caller.
    let is_here = ptr::eq(unsafe { Fiber::home(handle) }, host.mail);
    if !is_here || host.busy.get() {
        return false;
    }
    // SAFETY: promised by the caller; and the fiber belongs to this thread.
    let fiber = unsafe { Fiber::of_handle(handle) };
    if fiber.get().clocked.get().is_some_and(|clocked| !host.finds(clocked)) {
        return false;
    }
    let _busy = Busy::of(host);
    host.wake(fiber);
    true
}

/// Blocks the thread until the wait is over, for a fiber that may not switch away from its stack.
pub(in crate::fiber) fn wait_here(fiber: Fiber, sleep: Sleep) {
    let host = below().expect("the fiber runs");
    // HOST-1: never within another change of the lists, which does not wait.
    let _busy = Busy::of(host);
    // SAFETY: only this thread can resume the fiber, and it is here.
    if !unsafe { sleep.commit() } {
        return;
    }
    fiber.get().sleep.set(Some(sleep));
    host.waiting.set(host.waiting.get() + 1);
    let deadline = sleep.deadline.map(monotonic_ns);
    let deadline = deadline.map(|ns| Deadline { clock: Clock::Monotonic, ns });
    loop {
        host.collect(false);
        if host.ready.remove(fiber) {
            return;
        }
        // SAFETY: the fiber has not continued.
        if deadline.is_some_and(|it| now() >= it.ns) && unsafe { sleep.expire() } {
            fiber.get().sleep.set(None);
            host.waiting.set(host.waiting.get() - 1);
            return;
        }
        // Wait as a thread, because the fiber waits already.
        local::with(|own| {
            current::not_here(own, || host.mail.awaited().wait_until(deadline));
        });
    }
}

/// Rests the thread in this sleep: until it is woken, its deadline has passed, or a file is ready
/// that a fiber waits for.
pub(in crate::fiber) fn rest(sleep: Sleep) {
    let host = local::with(|own| own.host.get()).expect("it rests in `resting`, of its host");
    // SAFETY: the host is on the stack below.
    let host: &Host = unsafe { host.cast().as_ref() };
    // SAFETY: there is no stack to switch away from: the thread that resumes this sleep does not
    // switch to one, but ends a poll.
    if !unsafe { sleep.commit() } {
        return;
    }
    let woken = host.poll(sleep.deadline);
    host.polls.rested(woken);
    if woken > 0 {
        host.mail.tell_oneself();
    }
    // A wake-up that came first may end the next poll spuriously.
    // SAFETY: no stack is switched to; and `suspend` has not returned.
    let _ = unsafe { sleep.expire() };
}

/// HOST-1: sets `busy` until dropped, then restores the earlier value.
pub(super) struct Busy<'a>(&'a Host, bool);

impl<'a> Busy<'a> {
    pub(super) fn of(host: &'a Host) -> Self {
        let was = host.busy.replace(true);
        compiler_fence(SeqCst);
        Self(host, was)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        self.0.busy.set(self.1);
    }
}
