//! How a CPU learns that another has given it a thread to run.
//!
//! | `wake` | an idle CPU | a waker |
//! |---|---|---|
//! | `queue` | reads its inbox at each tick of its timer | sends nothing |
//! | `kick` | halts until an interrupt comes | interrupts a halted CPU, for each thread |
//! | `batched` | halts likewise | puts all threads in, then sends as few commands as it can |
//!
//! The first two are the condition variables of Nemo: without and with a kick. A CPU that watches
//! its inbox ([`Idle::Watch`](super::schedule::Idle)) needs neither. The mode may be changed at any
//! time: a sender follows the word of the inbox, which the CPU itself has written
//! ([`kick`](antiphon_wakeup::kick)).

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

/// How a CPU learns that it has a thread to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Wake {
    /// It checks by itself: when its running thread waits, yields or ends, or at a tick of its
    /// timer.
    Queue = 0,
    /// It gets an interrupt for each thread.
    Kick = 1,
    /// It gets one interrupt for all threads that are woken at once.
    Batched = 2,
}

static WAKE: AtomicUsize = AtomicUsize::new(Wake::Kick as usize);
static TICK_NS: AtomicU64 = AtomicU64::new(100_000);

/// Sets how CPUs learn that they have threads to run. CPUs that are halted already stay so until
/// they are interrupted.
pub fn set(wake: Wake) {
    WAKE.store(wake as usize, Relaxed);
}

/// Sets the time after which an idle CPU reads its inbox by itself, in nanoseconds.
pub fn set_tick_ns(ns: u64) {
    TICK_NS.store(ns, Relaxed);
}

/// Returns the time after which an idle CPU reads its inbox by itself; `None` if senders interrupt
/// it.
#[inline]
pub(super) fn tick_ns() -> Option<u64> {
    (WAKE.load(Relaxed) == Wake::Queue as usize).then(|| TICK_NS.load(Relaxed))
}

/// Returns whether one interrupt is sent for several threads.
#[inline]
pub(crate) fn is_batched() -> bool {
    WAKE.load(Relaxed) == Wake::Batched as usize
}
