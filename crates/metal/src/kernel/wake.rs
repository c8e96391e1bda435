//! How a CPU learns that another has given it a thread to run.
//!
//! | `wake` | an idle CPU | a waker |
//! |---|---|---|
//! | `queue` | looks at its inbox at each tick of its timer | sends nothing |
//! | `kick` | halts until an interrupt comes | sends one for each thread, if the CPU is halted |
//! | `batched` | the same | puts all threads in, then sends as few commands as reach their CPUs |
//!
//! The first two are the condition variables of Nemo: without and with a kick. A CPU that watches
//! its inbox ([`Idle::Watch`](super::schedule::Idle)) needs neither. The mode may be changed at any
//! time: a sender goes by what the inbox says, which the CPU has written there.
//!
//! - KICK-1: a sender that has taken `HALTED` away sends the interrupt before it runs anything
//!   else: interrupts are off from the first thread of a batch to its last command.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::cpu::{self, Cpu, MOST_CPUS};
use crate::x86::apic;
use crate::x86::vectors::KICK;

/// How a CPU learns that it has a thread to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Wake {
    /// By itself: when its running thread waits, yields or ends, or at a tick of its timer.
    Queue = 0,
    /// By an interrupt for each thread.
    Kick = 1,
    /// By an interrupt for all threads that are woken at once.
    Batched = 2,
}

static WAKE: AtomicUsize = AtomicUsize::new(Wake::Kick as usize);
static TICK_NS: AtomicU64 = AtomicU64::new(100_000);

/// Sets how CPUs learn that they have threads to run. CPUs that are halted already stay so until
/// they are interrupted.
pub fn set(wake: Wake) {
    WAKE.store(wake as usize, Relaxed);
}

/// Sets the time after which an idle CPU looks by itself, in nanoseconds.
pub fn set_tick_ns(ns: u64) {
    TICK_NS.store(ns, Relaxed);
}

/// The time after which an idle CPU looks by itself; `None` if it is interrupted.
#[inline]
pub(super) fn tick_ns() -> Option<u64> {
    (WAKE.load(Relaxed) == Wake::Queue as usize).then(|| TICK_NS.load(Relaxed))
}

/// Whether one interrupt is sent for several threads.
#[inline]
pub(crate) fn is_batched() -> bool {
    WAKE.load(Relaxed) == Wake::Batched as usize
}

const BITS: usize = 64;

/// The CPUs that a batch has to interrupt, by number.
pub(super) struct Kicks {
    words: [u64; MOST_CPUS / BITS],
    count: u32,
}

impl Kicks {
    pub(super) const NONE: Self = Self { words: [0; MOST_CPUS / BITS], count: 0 };

    /// Adds a CPU whose inbox has asked for an interrupt. Interrupts are off until
    /// [`send`](Self::send) (KICK-1).
    #[inline]
    pub(super) fn add(&mut self, cpu: &Cpu) {
        let number = cpu.number.get() as usize;
        self.words[number / BITS] |= 1 << (number % BITS);
        self.count += 1;
    }

    /// Sends the interrupts: to all others by one command, if that is half of them at least, since
    /// a kick does nothing to a CPU that runs; otherwise one for each cluster of an x2APIC, or for
    /// each CPU.
    pub(super) fn send(self) {
        let others = cpu::count() - 1;
        if self.count > 1 && 2 * self.count >= others {
            apic::send_to_others_at_once(KICK);
        } else if apic::is_x2() {
            self.send_to_clusters();
        } else {
            self.cpus().for_each(|cpu| apic::send_at_once(cpu.apic_id.get(), KICK));
        }
    }

    /// CPUs of a cluster have numbers beside each other, as firmware lists them. Where they do not,
    /// a cluster is sent more than one command.
    fn send_to_clusters(&self) {
        let mut group: Option<apic::Group> = None;
        for cpu in self.cpus() {
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

    fn cpus(&self) -> impl Iterator<Item = &'static Cpu> {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let mut left = word;
            core::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(cpu::get((index * BITS) as u32 + bit))
            })
        })
    }
}
