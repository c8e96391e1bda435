//! The interrupt table: the handler of each vector, and the stack on which it is entered.

use core::arch::asm;
use core::cell::UnsafeCell;

use super::entry;
use super::segments::{CODE, EXCEPTIONS, INTERRUPTS, NESTED, Pointer};

#[derive(Clone, Copy)]
#[repr(C)]
struct Gate {
    low: u64,
    high: u64,
}

impl Gate {
    const ABSENT: Self = Self { low: 0, high: 0 };

    fn new(handler: usize, stack: u8) -> Self {
        const INTERRUPT_GATE: u64 = 0x8e;
        let at = handler as u64;
        let low = at & 0xffff
            | u64::from(CODE) << 16
            | u64::from(stack) << 32
            | INTERRUPT_GATE << 40
            | (at >> 16 & 0xffff) << 48;
        Self { low, high: at >> 32 }
    }
}

#[repr(C, align(16))]
struct Interrupts(UnsafeCell<[Gate; 256]>);

// SAFETY: the first processor writes it, before it starts another.
unsafe impl Sync for Interrupts {}

static INTERRUPT_TABLE: Interrupts = Interrupts(UnsafeCell::new([Gate::ABSENT; 256]));

/// Writes the interrupt table, with the handlers for x2APIC if `x2`, otherwise those for xAPIC.
///
/// # Safety
///
/// This is the only processor, and interrupts are off.
pub unsafe fn write(x2: bool) {
    // SAFETY: the caller's promise.
    let table = unsafe { &mut *INTERRUPT_TABLE.0.get() };
    for (vector, handler) in entry::exceptions().into_iter().enumerate() {
        // Non-maskable interrupt, double fault, machine check.
        let stack = if [2, 8, 18].contains(&vector) { NESTED } else { EXCEPTIONS };
        table[vector] = Gate::new(handler, stack);
    }
    for gate in &mut table[32..] {
        *gate = Gate::new(entry::unexpected(), EXCEPTIONS);
    }
    for (vector, handler) in entry::interrupts(x2) {
        table[usize::from(vector)] = Gate::new(handler, INTERRUPTS);
    }
}

/// Changes the handler of a vector that the handlers of messages use.
///
/// # Safety
///
/// The function is a handler of interrupts. No other thread changes the same vector meanwhile; a
/// processor that takes the interrupt meanwhile enters the old handler or the new one.
pub unsafe fn set(vector: u8, handler: usize) {
    let gate = Gate::new(handler, INTERRUPTS);
    let table = INTERRUPT_TABLE.0.get().cast::<Gate>();
    // SAFETY: the gate is in the table, and is changed by one store, which a processor sees wholly
    // or not at all. The other half of a gate is the same for all handlers of an image.
    unsafe {
        let place = table.add(vector.into());
        assert!((*place).high == gate.high, "an image is below 4 GiB");
        (&raw mut (*place).low).write_volatile(gate.low);
    }
}

/// Makes this processor use the interrupt table.
///
/// # Safety
///
/// The table was written, and this processor has loaded its
/// [`Segments`](super::segments::Segments).
pub unsafe fn load() {
    let pointer = Pointer {
        limit: size_of::<[Gate; 256]>() as u16 - 1,
        base: INTERRUPT_TABLE.0.get().expose_provenance() as u64,
    };
    // SAFETY: the caller's promise.
    unsafe {
        asm!("lidt [{}]", in(reg) &raw const pointer, options(nostack, preserves_flags));
    }
}
