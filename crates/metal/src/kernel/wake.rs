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
//! time: a sender follows the word of the inbox, which the CPU itself has written.
//!
//! - KICK-1: a sender that has replaced `HALTED` sends the interrupt before it runs other code:
//!   interrupts are off from the first thread of a batch to its last command.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU64, AtomicUsize};

use super::cpu::{self, Cpu};
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

/// The most CPUs that are interrupted together: more are interrupted with all others.
const MOST_KICKS: usize = 256;

/// The CPUs that a batch must interrupt, by number.
pub(super) struct Kicks {
    /// The first `count` were written.
    numbers: [MaybeUninit<u32>; MOST_KICKS],
    count: usize,
}

impl Kicks {
    #[inline]
    pub(super) fn new() -> Self {
        // No zeros are written, which would take as long as some kicks.
        Self { numbers: [const { MaybeUninit::uninit() }; MOST_KICKS], count: 0 }
    }

    /// Adds a CPU whose inbox has asked for an interrupt. Interrupts are off until
    /// [`send`](Self::send) (KICK-1).
    #[inline]
    pub(super) fn add(&mut self, cpu: &Cpu) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            place.write(cpu.number.get());
        }
        self.count += 1;
    }

    /// Sends the interrupts. If at least half of the other CPUs need one, one command sends it to
    /// all of them, because a kick does nothing to a CPU that runs. Otherwise there is a command
    /// for each cluster of an x2APIC, or for each CPU.
    #[inline]
    pub(super) fn send(&self) {
        let others = cpu::count() as usize - 1;
        if self.count > MOST_KICKS || self.count > 1 && 2 * self.count >= others {
            apic::send_to_others_at_once(KICK);
        } else if apic::is_x2() {
            self.send_to_clusters();
        } else {
            self.cpus().for_each(|cpu| apic::send_at_once(cpu.apic_id.get(), KICK));
        }
    }

    /// Sends a command to each cluster. Firmware usually lists the CPUs of a cluster one after the
    /// other; where it does not, a cluster gets more than one command.
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
        // SAFETY: `add` has written the first `count`, of which there are no more than these.
        let number = |place: &MaybeUninit<u32>| unsafe { place.assume_init() };
        self.numbers.iter().take(self.count).map(number).map(cpu::get)
    }
}
