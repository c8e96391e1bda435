//! The page of `antiphon sched` (`antiphon_hints`).
//!
//! A thread that tells its sections is registered there, which puts it under that scheduler. One
//! that does not schedule all threads is not used: it runs its own only when no other thread wants
//! the CPU.
//!
//! A scheduler that ends says nothing. Its page stays, so a thread goes on to store to memory that
//! nothing reads. Where the thread waits anyway, it compares the time that the scheduler last wrote
//! to its slot with the present one:
//!
//! - SERVED-1: a thread that runs and finds a time older than [`FRESH_NS`] is not served any more.
//!   It gives its slot up, and asks again. A thread of a real-time policy is never run by the
//!   scheduler, and keeps its slot.
//! - SERVED-2: no thread registers with a scheduler that was found to have ended; the process looks
//!   for another one (`connections.rs`). When there is one, all threads ask again.
//! - SERVED-3: a slot is left without a section: if its scheduler has not ended, another thread may
//!   have the slot next.

#[cfg(test)]
mod tests;

use core::ptr::null_mut;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_hints::{FRESH_NS, Hints, SOCKET, Slot};
use antiphon_platform::Clock;

use super::connections::Connections;
use crate::local::Thread;
use crate::{clock, filter, futex, identity, rank, sys};

/// The largest rank of a thread that the scheduler runs.
const LARGEST_RANK: u8 = 40;

/// The way to the scheduler.
struct Door {
    connections: Connections,
    /// Registers the calling thread.
    register: fn(&'static Hints) -> Option<&'static Slot>,
}

static DOOR: Door = Door { connections: Connections::new(SOCKET), register };

fn register(hints: &'static Hints) -> Option<&'static Slot> {
    // The policy stays: the scheduler has all threads.
    hints.register_unmoved().ok().map(|registered| registered.slot())
}

/// Connects to the scheduler, if one runs all threads and this process has none.
pub(super) fn connect() {
    DOOR.connections.connect();
}

/// Registers the calling thread. Returns whether it has a slot now.
pub(super) fn register_at(thread: &Thread) -> bool {
    DOOR.register(thread)
}

/// Returns whether the thread must ask again for what heeds its sections: its scheduler has ended,
/// or another one has come. `is_served`: the thread has a slot.
pub(super) fn must_ask(thread: &Thread, is_served: bool) -> bool {
    DOOR.must_ask(thread, is_served)
}

impl Door {
    fn register(&'static self, thread: &Thread) -> bool {
        // SECTION-5: 0 in a child of the process that has connected.
        let number = self.connections.number();
        thread.slot_asked.store(number, Relaxed);
        // SERVED-2.
        let Some(hints) = self.connections.get(number) else { return false };
        // A system call that a filter may not expect.
        let registered = filter::optional(|| sys::errno_kept(|| (self.register)(hints)));
        let Some(Some(slot)) = registered else { return false };
        // A former thread of the slot may have ended within a section.
        slot.section.store(0, Relaxed);
        thread.slot.store(core::ptr::from_ref(slot).cast_mut(), Relaxed);
        let header = &hints.page().header;
        thread.slot_header.store(core::ptr::from_ref(header).cast_mut(), Relaxed);
        thread.slot_epoch.store(identity::epoch(), Relaxed);
        thread.slot_since_ns.store(clock::now(Clock::Monotonic), Relaxed);
        true
    }

    fn must_ask(&self, thread: &Thread, is_served: bool) -> bool {
        let number = self.connections.number();
        if number == 0 {
            return false;
        }
        let now_ns = clock::now(Clock::Monotonic);
        if is_served {
            let Some(slot) = slot(thread) else { return false };
            // SERVED-1.
            if is_fresh(thread, slot, now_ns) {
                return false;
            }
            if rank::own() > LARGEST_RANK {
                thread.slot_since_ns.store(now_ns, Relaxed);
                return false;
            }
            // SERVED-3.
            slot.section.store(0, Relaxed);
            thread.slot.store(null_mut(), Relaxed);
            self.connections.lose(thread.slot_asked.load(Relaxed));
            return true;
        }
        if self.connections.is_lost(number) {
            self.connections.search(now_ns);
        }
        let number = self.connections.number();
        thread.slot_asked.load(Relaxed) != number && !self.connections.is_lost(number)
    }
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
    if slot(thread).is_some_and(|slot| is_wanted(thread, slot)) {
        futex::yield_now();
    }
}

/// Returns whether threads wait for a CPU, as the scheduler says; `None` if it tells the calling
/// thread nothing: it has not yet, or does not while the thread is of a real-time policy.
pub(super) fn threads_wait(thread: &Thread) -> Option<bool> {
    let slot = slot(thread)?;
    let is_told = slot.seen_ns.load(Relaxed) >= thread.slot_since_ns.load(Relaxed);
    is_told.then(|| slot.waiting.load(Relaxed) > 0)
}

/// Returns where the scheduler counts the threads of this process that have lost the CPU in a
/// section.
pub(super) fn stalled(thread: &Thread) -> Option<&'static AtomicU32> {
    slot(thread)?;
    // SAFETY: of the page that `slot` is in, which stays mapped in this process (CONNECT-1).
    let header = unsafe { thread.slot_header.load(Relaxed).as_ref() }?;
    Some(&header.stalled)
}

/// Returns whether the scheduler wants the CPU: not if it has only said so before it ended.
fn is_wanted(thread: &Thread, slot: &Slot) -> bool {
    slot.take_wanted() && is_fresh(thread, slot, clock::now(Clock::Monotonic))
}

/// Returns whether the scheduler has written to the slot lately, or had no time yet to do so.
fn is_fresh(thread: &Thread, slot: &Slot, now_ns: u64) -> bool {
    let since_ns = slot.seen_ns.load(Relaxed).max(thread.slot_since_ns.load(Relaxed));
    now_ns.saturating_sub(since_ns) < FRESH_NS
}

fn slot(thread: &Thread) -> Option<&'static Slot> {
    // SECTION-5.
    if thread.slot_epoch.load(Relaxed) != identity::epoch() {
        return None;
    }
    // SAFETY: null, or of `register`, which got the slot from a page that stays mapped in this
    // process (CONNECT-1).
    unsafe { thread.slot.load(Relaxed).as_ref() }
}
