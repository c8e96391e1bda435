//! The end: an exit status for the host, and switching off.
//!
//! In order: QEMU's debug-exit port, which makes `2 × code + 1` the status of the process, unless
//! that was [switched off](without_debug_exit); the machine's own power-off, as ACPI has it; and a
//! halt with interrupts off. None of them needs a fault to end.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use super::cpu::{halt_for_good, outl, outw};
use crate::acpi::PowerOff;

/// The port of `-device isa-debug-exit,iobase=0xf4,iosize=4`.
const DEBUG_EXIT: u16 = 0xf4;

/// How a program has ended. The numbers are codes for the debug-exit port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// It has done what it was to do: status 33 of QEMU.
    Passed = 16,
    /// It has found something wrong: status 35.
    Failed = 17,
    /// It has panicked: status 37.
    Panicked = 18,
    /// A processor exception has ended it: status 39.
    Faulted = 19,
    /// The command line is wrong: status 41.
    Misused = 20,
}

/// How to switch off: kind, address and value, packed; 0 is unknown.
static POWER: AtomicU64 = AtomicU64::new(0);

const BY_PORT: u64 = 1 << 63;
const BY_BYTE: u64 = 1 << 62;

static HAS_DEBUG_EXIT: AtomicBool = AtomicBool::new(true);

/// Makes [`end`] leave out the debug-exit port, as on a machine that has none.
pub(crate) fn without_debug_exit() {
    // Relaxed: the threads that end the machine are created later.
    HAS_DEBUG_EXIT.store(false, Relaxed);
}

/// Notes how the machine is switched off.
pub fn note(power_off: PowerOff) {
    let packed = match power_off {
        PowerOff::Port { port, value } => BY_PORT | u64::from(port) << 16 | u64::from(value),
        PowerOff::Byte { address, value } if address < 1 << 48 => {
            BY_BYTE | address << 8 | u64::from(value)
        }
        PowerOff::Byte { .. } => return,
    };
    // Release: pairs with the acquire below, on another processor.
    POWER.store(packed, Release);
}

/// Ends the machine. Nothing that runs on it goes on.
pub fn end(outcome: Outcome) -> ! {
    if HAS_DEBUG_EXIT.load(Relaxed) {
        // SAFETY: where there is no such device, a write to the port does nothing.
        unsafe { outl(DEBUG_EXIT, outcome as u32) };
    }
    let packed = POWER.load(Acquire);
    if packed & BY_PORT != 0 {
        // SAFETY: the control register that the firmware's table names.
        unsafe { outw((packed >> 16) as u16, packed as u16) };
    } else if packed & BY_BYTE != 0 {
        let address = (packed & !BY_BYTE) >> 8;
        let register = core::ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: as above; the first 512 GiB are mapped at their own addresses, uncached where
        // there is no memory.
        unsafe { register.write_volatile(packed as u8) };
    }
    halt_for_good()
}
