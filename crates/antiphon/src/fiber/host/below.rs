//! The thread below a fiber that runs, and the part of its waits that the thread does.

use std::ptr;
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

use antiphon_linux::fiber::Sleep;
use antiphon_platform::{Clock, Deadline};

use super::super::control::Fiber;
use super::super::current;
use super::{Host, monotonic_ns, now};
use crate::local;

/// The host that the calling fiber runs on.
pub(in crate::fiber) fn below<'a>() -> Option<&'a Host> {
    let host = local::with(|own| own.fiber.get().and(own.host.get()));
    // SAFETY: where a fiber runs, its host is on the stack below, and stays for it.
    host.map(|host| unsafe { host.cast().as_ref() })
}

/// The number of the turn that the calling fiber has; `None`: it is none.
pub(in crate::fiber) fn turn() -> Option<u32> {
    below().map(Host::turn)
}

/// Whether the caller is a fiber that may change its thread.
pub(in crate::fiber) fn may_move() -> bool {
    below().is_some_and(|host| host.moves)
}

/// Whether the caller is a fiber, and another of its thread may go on. `false` for fibers that
/// move: the queue in which they stand is shared, and a yield costs as much as a wait.
pub(in crate::fiber) fn has_ready() -> bool {
    below().is_some_and(|host| !host.moves && !host.ready.is_empty())
}

/// Lets a fiber of the calling thread go on, if the caller is another fiber of that thread, without
/// notifying the thread. `false`: it is not so; or HOST-1, a signal handler may have come between:
/// also where something is to be written to that fiber's account, which may be open then.
///
/// # Safety
///
/// The handle is that of a fiber which is suspended in a wait; `true` ends that.
#[inline]
pub(in crate::fiber) unsafe fn wake_beside(handle: u64) -> bool {
    let Some(host) = below() else { return false };
    // SAFETY: the caller's.
    let is_here = ptr::eq(unsafe { Fiber::home(handle) }, host.mail);
    if !is_here || host.busy.get() {
        return false;
    }
    // SAFETY: the caller's; and it is of this thread.
    let fiber = unsafe { Fiber::of_handle(handle) };
    if fiber.get().clocked.get().is_some_and(|clocked| !host.finds(clocked)) {
        return false;
    }
    let _busy = Busy::of(host);
    host.wake(fiber);
    true
}

/// Waits on the stack of the fiber, which may not be left: its thread waits.
pub(in crate::fiber) fn wait_here(fiber: Fiber, sleep: Sleep) {
    let host = below().expect("the fiber runs");
    // HOST-1: not within another, which does not wait.
    let _busy = Busy::of(host);
    // SAFETY: no thread lets it go on meanwhile but this one, which is here.
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
        // SAFETY: it has not gone on.
        if deadline.is_some_and(|it| now() >= it.ns) && unsafe { sleep.expire() } {
            fiber.get().sleep.set(None);
            host.waiting.set(host.waiting.get() - 1);
            return;
        }
        // As a thread, because the fiber waits already.
        local::with(|own| {
            current::not_here(own, || host.mail.awaited().wait_until(deadline));
        });
    }
}

/// The thread rests, by this sleep: until that is woken, or its deadline, or a file is ready that a
/// fiber waits for.
pub(in crate::fiber) fn rest(sleep: Sleep) {
    let host = local::with(|own| own.host.get()).expect("it rests in `resting`, of its host");
    // SAFETY: that is on the stack below.
    let host: &Host = unsafe { host.cast().as_ref() };
    // SAFETY: there is no stack to leave, as it is not switched to: the thread that resumes this
    // sleep ends a poll.
    if !unsafe { sleep.commit() } {
        return;
    }
    let woken = host.poll(sleep.deadline);
    host.polls.rested(woken);
    if woken > 0 {
        host.mail.tell_oneself();
    }
    // A wake that was first may end the next poll, for no reason.
    // SAFETY: as above; `suspend` has not returned.
    let _ = unsafe { sleep.expire() };
}

/// HOST-1, for as long as it is there; and whether it was so before.
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
