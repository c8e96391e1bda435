//! The page of `antiphon sched` (`antiphon_hints`).
//!
//! A thread that tells its sections is registered there, which puts it under that scheduler. One
//! that does not schedule all threads is not used: it runs its own only when no other thread wants
//! the CPU.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use antiphon_hints::{Hints, SOCKET, Slot};

use crate::local::Thread;
use crate::{filter, futex, identity, sys};

/// The process's page. It stays mapped to the end of the process: slots are borrowed from it.
static HINTS: OnceLock<Hints> = OnceLock::new();
/// The epoch of the process that has mapped it.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// Connects to the scheduler, if one runs all threads and this process is not connected yet.
pub(super) fn connect() {
    if HINTS.get().is_none()
        && let Some(epoch) = identity::wiped_epoch()
        && let Ok(hints) = Hints::connect(SOCKET)
        && hints.is_whole()
        && HINTS.set(hints).is_ok()
    {
        EPOCH.store(epoch, Relaxed);
    }
}

/// Registers the calling thread. Returns whether it has a slot now.
pub(super) fn register(thread: &Thread) -> bool {
    let Some(hints) = HINTS.get() else { return false };
    let epoch = identity::epoch();
    // SECTION-5.
    if EPOCH.load(Relaxed) != epoch {
        return false;
    }
    // A system call that a filter may not expect. The policy stays: the scheduler has all threads.
    let registered = filter::optional(|| sys::errno_kept(|| hints.register_unmoved()));
    let Some(Ok(registered)) = registered else { return false };
    thread.slot.store(std::ptr::from_ref(registered.slot()).cast_mut(), Relaxed);
    thread.slot_epoch.store(epoch, Relaxed);
    true
}

/// Tells that the calling thread is in a critical section.
pub(super) fn begin(thread: &Thread) {
    if let Some(slot) = slot(thread) {
        slot.enter();
    }
}

/// Tells that it no longer is.
pub(super) fn end(thread: &Thread) {
    if let Some(slot) = slot(thread) {
        slot.leave();
    }
}

/// Gives the CPU away if a preemption was put off.
pub(super) fn released(thread: &Thread) {
    if slot(thread).is_some_and(Slot::take_wanted) {
        futex::yield_now();
    }
}

fn slot(thread: &Thread) -> Option<&'static Slot> {
    // SECTION-5.
    if thread.slot_epoch.load(Relaxed) != identity::epoch() {
        return None;
    }
    // SAFETY: `register` got the slot from the page, which stays mapped in this process: `HINTS` is
    // never dropped.
    unsafe { thread.slot.load(Relaxed).as_ref() }
}
