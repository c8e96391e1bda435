//! The local APIC: interrupts between processors, and the timer. Its registers are in memory
//! (xAPIC) or registers of the processor (x2APIC); x2APIC is used where the processor has it.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicUsize};

use super::cpu::{before_wrmsr, cpuid, outb, rdmsr, restore, without_interrupts, wrmsr};
use super::vectors::{SPURIOUS, TIMER};

/// Address of the registers in memory. Handlers in assembly read it.
pub(super) static REGISTERS: AtomicUsize = AtomicUsize::new(0xfee0_0000);
static X2: AtomicBool = AtomicBool::new(false);
static BY_DEADLINE: AtomicBool = AtomicBool::new(false);

const BASE: u32 = 0x1b;
const ENABLED: u64 = 1 << 11;
const EXTENDED: u64 = 1 << 10;

const ID: usize = 0x20;
const PRIORITY: usize = 0x80;
const END: usize = 0xb0;
const SPURIOUS_VECTOR: usize = 0xf0;
const COMMAND: usize = 0x300;
const DESTINATION: usize = 0x310;
const LOCAL_TIMER: usize = 0x320;
const INITIAL: usize = 0x380;
const CURRENT: usize = 0x390;
const DIVIDE: usize = 0x3e0;

const DEADLINE: u32 = 0x6e0;

/// Destination: all processors but this one.
const ALL_OTHERS: u32 = 3 << 18;
/// The interrupt was not accepted yet.
const PENDING: u32 = 1 << 12;

/// Returns whether the processor's registers are used (x2APIC).
#[inline]
pub fn is_x2() -> bool {
    X2.load(Relaxed)
}

/// Returns whether the processor has registers of its own (x2APIC).
pub(crate) fn can_x2() -> bool {
    cpuid(1, 0).ecx & 1 << 21 != 0
}

/// Chooses the kind of registers, for all processors.
pub(crate) fn choose(registers: u64) {
    let features = cpuid(1, 0).ecx;
    X2.store(can_x2(), Relaxed);
    BY_DEADLINE.store(features & 1 << 24 != 0, Relaxed);
    if let Ok(address) = usize::try_from(registers) {
        REGISTERS.store(address, Relaxed);
    }
}

/// Masks all lines of the legacy interrupt controllers (8259), which by default deliver to the
/// vectors of exceptions.
pub fn silence_old_controllers() {
    // The commands: begin, vectors from 32 on, how the two are connected, the mode, all lines
    // masked.
    for (port, values) in [(0x20, [0x11, 0x20, 4, 1, 0xff]), (0xa0, [0x11, 0x28, 2, 1, 0xff])] {
        for (index, value) in values.into_iter().enumerate() {
            // SAFETY: the ports belong to the controllers, or to no device.
            unsafe { outb(port + u16::from(index > 0), value) };
        }
    }
}

fn register(at: usize) -> *mut u32 {
    core::ptr::with_exposed_provenance_mut(REGISTERS.load(Relaxed) + at)
}

fn read(at: usize) -> u32 {
    if is_x2() {
        // SAFETY: `choose` has checked that the processor has x2APIC.
        unsafe { rdmsr(0x800 + (at as u32 >> 4)) as u32 }
    } else {
        // SAFETY: the APIC's registers, which are mapped uncached.
        unsafe { register(at).read_volatile() }
    }
}

fn write(at: usize, value: u32) {
    if is_x2() {
        // SAFETY: as in `read`.
        unsafe { wrmsr(0x800 + (at as u32 >> 4), value.into()) };
    } else {
        // SAFETY: as in `read`.
        unsafe { register(at).write_volatile(value) };
    }
}

/// Sets up the APIC of this processor. Its timer is not set yet.
pub fn set_up() {
    // SAFETY: all 64-bit processors have this register; the address of the APIC's registers is not
    // changed.
    unsafe {
        let base = rdmsr(BASE) | ENABLED;
        wrmsr(BASE, base);
        if is_x2() {
            wrmsr(BASE, base | EXTENDED);
        }
    }
    write(PRIORITY, 0);
    write(SPURIOUS_VECTOR, 1 << 8 | u32::from(SPURIOUS));
    // The timer counts at its full rate.
    write(DIVIDE, 0b1011);
    let deadline = if BY_DEADLINE.load(Relaxed) { 1 << 18 } else { 0 };
    write(LOCAL_TIMER, deadline | u32::from(TIMER));
    // With registers in memory, a deadline could otherwise be written before the mode.
    before_wrmsr();
}

/// Returns the id of this processor's APIC.
pub fn id() -> u32 {
    if is_x2() { read(ID) } else { read(ID) >> 24 }
}

/// Signals the end of the interrupt that is being handled.
#[inline]
pub fn end_of_interrupt() {
    write(END, 0);
}

/// Sends an interrupt to the processor with this APIC id.
#[inline]
pub fn send(apic_id: u32, vector: u8) {
    command(apic_id, vector.into());
}

/// Like [`send`], for a caller that has switched interrupts off.
#[inline]
pub fn send_at_once(apic_id: u32, vector: u8) {
    command_at_once(apic_id, vector.into());
}

/// Sends an interrupt to all other processors, by one command.
#[inline]
pub fn send_to_others(vector: u8) {
    command(0, ALL_OTHERS | u32::from(vector));
}

/// Like [`send_to_others`], for a caller that has switched interrupts off.
#[inline]
pub fn send_to_others_at_once(vector: u8) {
    command_at_once(0, ALL_OTHERS | u32::from(vector));
}

/// Processors that an x2APIC interrupts by one command: up to sixteen, of one cluster.
///
/// The logical address follows from the id: Intel, "Software Developer's Manual", "Deriving Logical
/// x2APIC ID from the Local x2APIC ID".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(u32);

impl Group {
    const MEMBERS: u32 = 0xffff;
    /// The destination is a logical address.
    const LOGICAL: u32 = 1 << 11;

    /// Returns the group of the processor with this APIC id.
    #[must_use]
    pub fn of(apic_id: u32) -> Self {
        Self((apic_id >> 4) << 16 | 1 << (apic_id & 15))
    }

    /// Returns this group joined with another; `None` if they belong to two clusters.
    #[must_use]
    pub fn with(self, other: Self) -> Option<Self> {
        ((self.0 ^ other.0) & !Self::MEMBERS == 0).then_some(Self(self.0 | other.0))
    }

    /// Sends an interrupt to all processors of the group. Interrupts are off, and the APIC is an
    /// x2APIC.
    pub fn send_at_once(self, vector: u8) {
        command_at_once(self.0, Self::LOGICAL | u32::from(vector));
    }
}

/// Resets the processor with this APIC id, which then waits to be started.
pub(crate) fn send_reset(apic_id: u32) {
    command(apic_id, 0x4500);
}

/// Starts the processor with this APIC id at `page`, a multiple of 4096 below 1 MiB.
pub(crate) fn send_start(apic_id: u32, page: usize) {
    command(apic_id, 0x4600 | (page >> 12) as u32);
}

#[inline]
fn command(apic_id: u32, low: u32) {
    // A handler that interrupts between the two writes of an xAPIC might send an interrupt itself.
    let were_on = without_interrupts();
    command_at_once(apic_id, low);
    restore(were_on);
}

/// Writes a command. Interrupts are off.
#[inline]
fn command_at_once(apic_id: u32, low: u32) {
    if is_x2() {
        // Earlier stores must be visible before the interrupt: a write to these registers does not
        // wait for stores.
        before_wrmsr();
        // SAFETY: as in `read`; the handler answers for the effects of the interrupt.
        unsafe { wrmsr(0x830, u64::from(apic_id) << 32 | u64::from(low)) };
        return;
    }
    let registers = REGISTERS.load(Relaxed);
    let at = |offset| core::ptr::with_exposed_provenance_mut::<u32>(registers + offset);
    // SAFETY: as in `read`. Uncached writes do not overtake earlier stores.
    unsafe {
        while at(COMMAND).read_volatile() & PENDING != 0 {
            core::hint::spin_loop();
        }
        at(DESTINATION).write_volatile(apic_id << 24);
        at(COMMAND).write_volatile(low);
    }
}

/// Sets the timer of this processor to interrupt it: at `at_tsc` of the time-stamp counter if it
/// can do that, otherwise after `in_ticks` of its own ticks; 0 for never.
#[inline]
pub fn set_timer(at_tsc: u64, in_ticks: u32) {
    if BY_DEADLINE.load(Relaxed) {
        // SAFETY: `choose` has checked that the processor has the register.
        unsafe { wrmsr(DEADLINE, at_tsc) };
    } else {
        write(INITIAL, in_ticks);
    }
}

/// Returns the ticks until the timer ends, to calibrate it.
pub(super) fn timer_left() -> u32 {
    read(CURRENT)
}

/// Returns whether the timer takes a value of the time-stamp counter.
#[must_use]
pub fn is_by_deadline() -> bool {
    BY_DEADLINE.load(Relaxed)
}
