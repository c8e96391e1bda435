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
//! ([`kick`](crate::kick)).

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::cpu::Cpu;
use crate::x86::apic;
use crate::x86::vectors::KICK;

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

/// Sends a command to each cluster of an x2APIC, otherwise one to each CPU. Firmware usually lists
/// the CPUs of a cluster one after the other; where it does not, a cluster gets more than one
/// command. Interrupts are off.
#[inline]
pub(super) fn kick_each(cpus: impl Iterator<Item = &'static Cpu>) {
    if apic::is_x2() {
        kick_clusters(cpus);
    } else {
        cpus.for_each(|cpu| apic::send_at_once(cpu.apic_id.get(), KICK));
    }
}

fn kick_clusters(cpus: impl Iterator<Item = &'static Cpu>) {
    let mut group: Option<apic::Group> = None;
    for cpu in cpus {
        let one = apic::Group::of(cpu.apic_id.get());
        group = match group.map(|group| (group, group.with(one))) {
            Some((_, Some(both))) => Some(both),
            Some((group, None)) => {
                group.send_at_once(KICK);
                Some(one)
            }
            None => Some(one),
        };
    }
    if let Some(group) = group {
        group.send_at_once(KICK);
    }
}
