//! The state of each CPU, and the CPU that the caller runs on: the base of the segment GS is the
//! address of its state.

use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use antiphon_wakeup::condvar::Waiters;

use super::state::{BROADCAST_ACTIONS, Scheduler, Thread};
use crate::batch::Batch;
use crate::broadcast::Seen;
use crate::direct::Passes;
use crate::inbox::Inbox;
use crate::machine;
use crate::metal::Metal;
use crate::pending::Pending;
use crate::slot::Slot;
use crate::x86::cpu::wrmsr;
use crate::x86::segments::Segments;

/// Largest number of CPUs.
pub const MOST_CPUS: usize = machine::MOST_PROCESSORS;

/// The state of a CPU.
///
/// The first cache line is used by the CPU itself; then come what others read, and the fields that
/// others write to; then, again, fields of the CPU itself.
#[repr(C, align(128))]
pub struct Cpu {
    this: Cell<*const Self>,
    current: Cell<*const Thread>,
    /// The time that a handler has noted, for measurements.
    pub noted: AtomicU64,
    /// The number of the CPU, from 0 on.
    pub(crate) number: Cell<u32>,
    /// The node of the CPU.
    pub(crate) node: Cell<u16>,
    /// Whether the CPU runs actions of messages.
    pub(crate) in_interrupt: Cell<bool>,
    /// The id of the CPU's APIC. Senders read it, so it is apart from what the CPU writes.
    pub(crate) apic_id: Apart<Cell<u32>>,
    /// Threads that other CPUs have made runnable here.
    pub(crate) inbox: Apart<Inbox<Thread>>,
    /// Actions that other CPUs have posted.
    pub(crate) pending: Apart<Pending<Metal>>,
    /// The action that another CPU has posted, in the form with one slot.
    pub(crate) slot: Apart<Slot<Metal>>,
    /// The count of the batches of actions that the CPU has run.
    pub(crate) batch: Apart<Batch<Metal>>,
    pub(super) seen: Seen<Metal, BROADCAST_ACTIONS>,
    /// The number of passes that the CPU has taken.
    pub(crate) passes: Passes<Metal>,
    pub(super) scheduler: UnsafeCell<Scheduler>,
    /// The threads of this CPU that wait for a [`Condvar`](super::condvar::Condvar).
    pub(super) waiters: UnsafeCell<Waiters<Metal, &'static Thread>>,
    segments: Segments,
}

/// A value on its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> core::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

// SAFETY: only the CPU itself writes the cells, and those that other CPUs read only before
// `announce`; only the CPU itself uses `scheduler` and `waiters`, with interrupts off.
unsafe impl Sync for Cpu {}

static CPUS: [AtomicPtr<Cpu>; MOST_CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST_CPUS];
static COUNT: AtomicU32 = AtomicU32::new(0);
static NODES: AtomicU32 = AtomicU32::new(1);

const GS_BASE: u32 = 0xc000_0101;

impl Cpu {
    /// Creates the state of a CPU that has not started.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self {
            this: Cell::new(ptr::null()),
            current: Cell::new(ptr::null()),
            noted: AtomicU64::new(0),
            number: Cell::new(0),
            node: Cell::new(0),
            in_interrupt: Cell::new(false),
            apic_id: Apart(Cell::new(0)),
            inbox: Apart(Inbox::NEW),
            pending: Apart(Pending::NEW),
            slot: Apart(Slot::NEW),
            batch: Apart(Batch::NEW),
            seen: Seen::NEW,
            passes: Passes::NEW,
            scheduler: UnsafeCell::new(Scheduler::NEW),
            waiters: UnsafeCell::new(Waiters::NEW),
            segments: Segments::new(),
        }
    }

    /// Returns the id of the CPU's APIC.
    #[must_use]
    pub fn apic_id(&self) -> u32 {
        self.apic_id.get()
    }

    /// Returns the node of the CPU.
    #[must_use]
    pub fn node(&self) -> u16 {
        self.node.get()
    }

    /// Makes this the state of the CPU that the caller runs on.
    ///
    /// # Safety
    ///
    /// No other CPU uses this state, and interrupts are off.
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

    /// Makes the CPU known to the others.
    pub(super) fn announce(&'static self) {
        let number = self.number.get();
        // Release: its state; pairs with the acquire in `get`.
        CPUS[number as usize].store(ptr::from_ref(self).cast_mut(), Release);
        COUNT.store(number + 1, Release);
    }

    /// Returns the thread that the CPU runs. For code on this CPU.
    #[inline]
    pub fn current(&self) -> *const Thread {
        self.current.get()
    }

    #[inline]
    pub(super) fn set_current(&self, thread: *const Thread) {
        self.current.set(thread);
    }
}

/// Returns the CPU that the caller runs on. A thread may be on another one after it has
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

/// Returns the running thread.
#[inline]
pub fn current() -> &'static Thread {
    let thread: *const Thread;
    // SAFETY: the second word is the address of the running thread, which is never freed.
    unsafe {
        asm!("mov {}, gs:[8]", out(reg) thread, options(nostack, preserves_flags, readonly));
        &*thread
    }
}

/// Returns the number of the CPU that the caller runs on.
#[inline]
pub fn number() -> u32 {
    this().number.get()
}

/// Returns the CPU with this number.
///
/// # Panics
///
/// If the machine has no such CPU.
#[inline]
pub fn get(number: u32) -> &'static Cpu {
    // Acquire: pairs with the release in `announce`.
    let cpu = CPUS[number as usize].load(Acquire);
    // SAFETY: the state of a CPU is never freed.
    unsafe { cpu.as_ref() }.expect("a CPU of this machine")
}

/// Returns the number of CPUs that run.
#[inline]
pub fn count() -> u32 {
    COUNT.load(Relaxed)
}

/// Returns the number of nodes.
#[inline]
pub fn nodes() -> u32 {
    NODES.load(Relaxed)
}

pub(super) fn set_nodes(count: u32) {
    NODES.store(count, Relaxed);
}
