//! The state of a CPU, and which one the caller is on: the base of the segment GS is its address.

use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use super::state::{BROADCAST_ACTIONS, Scheduler, Thread};
use crate::batch::Batch;
use crate::broadcast::Seen;
use crate::inbox::Inbox;
use crate::metal::Metal;
use crate::pending::Pending;
use crate::slot::Slot;
use crate::x86::cpu::wrmsr;
use crate::x86::segments::Segments;

/// The greatest number of CPUs.
pub const MOST_CPUS: usize = 1024;

/// The state of a CPU.
///
/// The first line is its own; then there is what others write to; then, again, its own.
#[repr(C, align(128))]
pub struct Cpu {
    this: Cell<*const Self>,
    current: Cell<*const Thread>,
    /// The time that a handler has noted, for measurements.
    pub noted: AtomicU64,
    /// Its number, counted from 0.
    pub number: Cell<u32>,
    /// The id of its APIC.
    pub apic_id: Cell<u32>,
    /// Its node.
    pub node: Cell<u16>,
    /// Whether it runs actions of messages.
    pub in_interrupt: Cell<bool>,
    /// Threads that others want it to run.
    pub inbox: Apart<Inbox<Metal>>,
    /// Actions that others want it to run.
    pub pending: Apart<Pending<Metal>>,
    /// The action that another wants it to run, in the form with one slot.
    pub slot: Apart<Slot<Metal>>,
    /// The batches of actions that it has run.
    pub batch: Apart<Batch<Metal>>,
    pub(super) seen: Seen<Metal, BROADCAST_ACTIONS>,
    pub(super) scheduler: UnsafeCell<Scheduler>,
    segments: Segments,
}

/// A value on lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

// SAFETY: cells are written by the CPU itself, those that others read before it is known to them;
// `scheduler` is used by the CPU itself, with interrupts off.
unsafe impl Sync for Cpu {}

static CPUS: [AtomicPtr<Cpu>; MOST_CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST_CPUS];
static COUNT: AtomicU32 = AtomicU32::new(0);
static NODES: AtomicU32 = AtomicU32::new(1);

const GS_BASE: u32 = 0xc000_0101;

impl Cpu {
    /// A CPU that has not started.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            this: Cell::new(ptr::null()),
            current: Cell::new(ptr::null()),
            noted: AtomicU64::new(0),
            number: Cell::new(0),
            apic_id: Cell::new(0),
            node: Cell::new(0),
            in_interrupt: Cell::new(false),
            inbox: Apart(Inbox::NEW),
            pending: Apart(Pending::NEW),
            slot: Apart(Slot::NEW),
            batch: Apart(Batch::NEW),
            seen: Seen::NEW,
            scheduler: UnsafeCell::new(Scheduler::NEW),
            segments: Segments::new(),
        }
    }

    /// Makes this the state of the CPU that the caller runs on.
    ///
    /// # Safety
    ///
    /// It is no other CPU's, and interrupts are off.
    pub(super) unsafe fn adopt(&'static self, number: u32, apic_id: u32, node: u16) {
        self.this.set(self);
        self.number.set(number);
        self.apic_id.set(apic_id);
        self.node.set(node);
        // SAFETY: all processors of 64 bits have the register; nothing else uses the segment.
        // `load` resets FS but not GS.
        unsafe {
            self.segments.load();
            wrmsr(GS_BASE, ptr::from_ref(self).expose_provenance() as u64);
        }
    }

    /// Makes it known to the others.
    pub(super) fn announce(&'static self) {
        let number = self.number.get();
        // Release: its state; pairs with the acquire in `get`.
        CPUS[number as usize].store(ptr::from_ref(self).cast_mut(), Release);
        COUNT.store(number + 1, Release);
    }

    /// The thread that it runs. For the CPU itself.
    #[inline]
    pub fn current(&self) -> *const Thread {
        self.current.get()
    }

    #[inline]
    pub(super) fn set_current(&self, thread: *const Thread) {
        self.current.set(thread);
    }
}

/// The CPU that the caller runs on. A thread may be on another one after it has
/// [moved](super::thread::bind).
#[inline]
pub fn this() -> &'static Cpu {
    let cpu: *const Cpu;
    // SAFETY: the first word of the CPU's state is its address.
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) cpu, options(nostack, preserves_flags, readonly));
        &*cpu
    }
}

/// The running thread.
#[inline]
pub fn current() -> &'static Thread {
    let thread: *const Thread;
    // SAFETY: the second word is the address of the running thread, which is never freed.
    unsafe {
        asm!("mov {}, gs:[8]", out(reg) thread, options(nostack, preserves_flags, readonly));
        &*thread
    }
}

/// The number of the CPU that the caller runs on.
#[inline]
pub fn number() -> u32 {
    this().number.get()
}

/// The CPU of that number.
///
/// # Panics
///
/// If there is none.
#[inline]
pub fn get(number: u32) -> &'static Cpu {
    // Acquire: pairs with the release in `announce`.
    let cpu = CPUS[number as usize].load(Acquire);
    // SAFETY: the state of a CPU is never freed.
    unsafe { cpu.as_ref() }.expect("a CPU of this machine")
}

/// How many CPUs run.
#[inline]
pub fn count() -> u32 {
    COUNT.load(Relaxed)
}

/// How many nodes there are.
#[inline]
pub fn nodes() -> u32 {
    NODES.load(Relaxed)
}

pub(super) fn set_nodes(count: u32) {
    NODES.store(count, Relaxed);
}
