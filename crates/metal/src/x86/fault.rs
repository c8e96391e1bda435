//! Reports of exceptions and panics on the serial port: the cause, the place and the addresses of a
//! backtrace. Then the machine ends, with a status that is not zero.
//!
//! A backtrace follows frame pointers, within the stack that it begins on. `antiphon-lab metal`
//! names the addresses.

use core::fmt::Write;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use super::cpu::{halt_for_good, without_interrupts};
use super::paging::{MOST_STACKS, STACK_SIZE, STACK_STRIDE, STACKS};
use super::power::{Outcome, end};
use super::uart::Uart;
use crate::kernel::cpu;

/// The registers as `entry` has saved them, the number, the error code and the frame.
#[derive(Debug)]
#[repr(C)]
pub struct Registers {
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    r11: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rbp: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    rbx: u64,
    rax: u64,
    vector: u64,
    error: u64,
    rip: u64,
    cs: u64,
    flags: u64,
    rsp: u64,
    ss: u64,
}

const NAMES: [&str; 20] = [
    "division by zero",
    "debug exception",
    "non-maskable interrupt",
    "breakpoint",
    "overflow",
    "bound exceeded",
    "invalid instruction",
    "no floating point",
    "double fault",
    "coprocessor overrun",
    "invalid task state",
    "segment not present",
    "stack segment fault",
    "general protection fault",
    "page fault",
    "reserved",
    "floating-point error",
    "alignment check",
    "machine check",
    "vector floating-point error",
];
const PAGE_FAULT: u64 = 14;

/// Largest number of addresses in a backtrace.
const DEPTH: usize = 32;
/// Size of the guard below a stack, in bytes.
const GUARD: usize = STACK_STRIDE - STACK_SIZE;

/// 1 + the number of the processor that reports; 0 if none does.
static REPORTER: AtomicU32 = AtomicU32::new(0);

/// Makes this processor the one that reports; others that come later halt. If a report itself
/// fails, the machine ends.
fn begin(outcome: Outcome) {
    let _ = without_interrupts();
    let me = cpu::number().wrapping_add(1);
    match REPORTER.compare_exchange(0, me, Relaxed, Relaxed) {
        Ok(_) => {}
        Err(other) if other == me => end(outcome),
        Err(_) => halt_for_good(),
    }
}

/// Reports an exception.
pub(super) extern "C" fn exception(registers: &Registers) -> ! {
    begin(Outcome::Faulted);
    let name = NAMES.get(registers.vector as usize).unwrap_or(&"unexpected interrupt");
    let mut out = Uart;
    let _ = writeln!(
        out,
        "\nexception: {name} (vector {}, error code {:#x}) on CPU {}",
        registers.vector,
        registers.error,
        cpu::number()
    );
    if registers.vector == PAGE_FAULT {
        let address: u64;
        // SAFETY: the instruction only reads the address of the fault.
        unsafe { core::arch::asm!("mov {}, cr2", out(reg) address, options(nomem, nostack)) };
        let what = if is_guard_page(address as usize) { ": a stack has overflowed" } else { "" };
        let _ = writeln!(out, "address: {address:#018x}{what}");
    }
    let _ = writeln!(out, "{registers:#018x?}");
    backtrace(&mut out, registers.rip, registers.rbp as usize, registers.rsp as usize);
    let _ = writeln!(out, "status=faulted");
    end(Outcome::Faulted)
}

/// Returns whether the address is in a guard page: in no stack, and below one.
fn is_guard_page(address: usize) -> bool {
    let within = address.wrapping_sub(STACKS);
    let below_thread = within < MOST_STACKS * STACK_STRIDE && within % STACK_STRIDE < GUARD;
    below_thread || boot_stack().is_some_and(|(low, _)| (low - GUARD..low).contains(&address))
}

/// Prints the return addresses of the frames from `frame` on.
fn backtrace(out: &mut Uart, at: u64, mut frame: usize, stack: usize) {
    let _ = writeln!(out, "at={at:#x}");
    let Some((low, high)) = bounds(stack) else { return };
    for _ in 0..DEPTH {
        if frame < low || frame + 16 > high || !frame.is_multiple_of(8) {
            return;
        }
        let words = core::ptr::with_exposed_provenance::<[usize; 2]>(frame);
        // SAFETY: the words are within a stack, which is mapped.
        let [next, address] = unsafe { words.read() };
        if address == 0 {
            return;
        }
        // The call is before the address that it returns to.
        let _ = writeln!(out, "at={:#x}", address - 1);
        if next <= frame {
            return;
        }
        frame = next;
    }
}

/// Returns the ends of the stack that contains the address; for an address in a guard page, of the
/// stack above it.
fn bounds(address: usize) -> Option<(usize, usize)> {
    let within = address.wrapping_sub(STACKS);
    if within < MOST_STACKS * STACK_STRIDE {
        let top = STACKS + (within / STACK_STRIDE + 1) * STACK_STRIDE;
        return Some((top - STACK_SIZE, top));
    }
    boot_stack().filter(|(low, high)| (low - GUARD..*high).contains(&address))
}

#[cfg(antiphon_image)]
fn boot_stack() -> Option<(usize, usize)> {
    Some(super::boot::stack())
}

#[cfg(not(antiphon_image))]
fn boot_stack() -> Option<(usize, usize)> {
    None
}

/// Reports a panic.
#[cfg(antiphon_image)]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    begin(Outcome::Panicked);
    let mut out = Uart;
    let _ = writeln!(out, "\npanic on CPU {}: {}", cpu::number(), info.message());
    if let Some(place) = info.location() {
        let _ = writeln!(out, "place: {place}");
    }
    let (frame, at): (usize, u64);
    // SAFETY: the instructions only read registers.
    unsafe {
        core::arch::asm!("mov {}, rbp", "lea {}, [rip]", out(reg) frame, out(reg) at,
            options(nomem, nostack, preserves_flags));
    }
    backtrace(&mut out, at, frame, frame);
    let _ = writeln!(out, "status=panicked");
    end(Outcome::Panicked)
}
