//! The end of the machine: an exit status for the host, and switching off.
//!
//! Three ways are tried in order: QEMU's debug-exit port, which makes `2 × code + 1` the status of
//! its process, unless that was switched off (`end=acpi`); the machine's power-off, as
//! ACPI describes it; and a halt with interrupts off. None of them provokes a fault.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use super::cpu::{halt_for_good, outl, outw};
use crate::acpi::PowerOff;

/// The port of `-device isa-debug-exit,iobase=0xf4,iosize=4`.
const DEBUG_EXIT: u16 = 0xf4;

/// The outcome of a program. The numbers are codes for the debug-exit port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// The program has passed: QEMU's exit status is 33.
    Passed = 16,
    /// The program has found an error: status 35.
    Failed = 17,
    /// The program or the kernel has panicked: status 37.
    Panicked = 18,
    /// A processor exception has ended the program: status 39.
    Faulted = 19,
    /// The command line is wrong: status 41.
    Misused = 20,
}

/// How to switch off: kind, address and value, packed; 0 if it is not known.
static POWER: AtomicU64 = AtomicU64::new(0);

const BY_PORT: u64 = 1 << 63;
const BY_BYTE: u64 = 1 << 62;

static HAS_DEBUG_EXIT: AtomicBool = AtomicBool::new(true);

/// Makes [`end`] leave out the debug-exit port, as on a machine that has none.
pub(crate) fn without_debug_exit() {
    // Relaxed: the threads that end the machine are created later.
    HAS_DEBUG_EXIT.store(false, Relaxed);
}

/// Stores how the machine is switched off.
pub(crate) fn note(power_off: PowerOff) {
    let packed = match power_off {
        PowerOff::Port { port, value } => BY_PORT | u64::from(port) << 16 | u64::from(value),
        PowerOff::Byte { address, value } if address < 1 << 48 => {
            BY_BYTE | address << 8 | u64::from(value)
        }
        PowerOff::Byte { .. } => return,
    };
    // Release: pairs with the acquire in `end`, on another processor.
    POWER.store(packed, Release);
}

/// Ends the machine: no code runs on it afterwards.
pub fn end(outcome: Outcome) -> ! {
    if HAS_DEBUG_EXIT.load(Relaxed) {
        // SAFETY: without that device, a write to the port does nothing.
        unsafe { outl(DEBUG_EXIT, outcome as u32) };
    }
    let packed = POWER.load(Acquire);
    if packed & BY_PORT != 0 {
        // SAFETY: the port is the control register that the firmware's table names.
        unsafe { outw((packed >> 16) as u16, packed as u16) };
    } else if packed & BY_BYTE != 0 {
        let address = (packed & !BY_BYTE) >> 8;
        let register = core::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the address is the control register that the firmware's table names. The first
        // 512 GiB are mapped at their physical addresses, uncached where there is no memory.
        unsafe { register.write_volatile(packed as u8) };
    }
    halt_for_good()
}
