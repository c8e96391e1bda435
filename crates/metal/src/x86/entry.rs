//! The way from an interrupt to Rust, and back.
//!
//! A short handler (a kick, a note of the time) stays on the stack of its vector, changes three
//! registers and returns. A handler in Rust leaves that stack first: it copies its frame below the
//! stack pointer of the interrupted code, and keeps a distance of 192 bytes, because precompiled
//! code may use memory below its stack pointer. So the handler may switch to another thread, and
//! the next interrupt finds its stack free.
//!
//! Each handler exists twice: it writes the end of the interrupt to memory (xAPIC) or to a register
//! of the processor (x2APIC).

use core::arch::naked_asm;
use core::mem::offset_of;

use super::{apic, fault, vectors};
use crate::kernel;
use crate::kernel::cpu::Cpu;
use crate::kernel::message::direct::Direct;

/// Distance to the interrupted code's stack pointer, in bytes.
const DISTANCE: usize = 192;

/// Signals the end of an interrupt, in assembly. Overwrites `rax`, and for x2APIC also `rcx` and
/// `rdx`.
macro_rules! end_of_interrupt {
    (x) => {
        "mov rax, [rip + {apic}]\nmov dword ptr [rax + 0xb0], 0"
    };
    (x2) => {
        "mov ecx, 0x80b\nxor eax, eax\nxor edx, edx\nwrmsr"
    };
}

/// Defines a handler in Rust: it leaves the vector's stack, saves the registers that a call may
/// change, and calls `$rust`.
macro_rules! rust_handler {
    ($(#[$doc:meta])* $name:ident $(<$generic:ident: $bound:path>)? => $rust:path
        $(, $before:literal)*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name$(<$generic: $bound>)?() {
            naked_asm!(
                "push rax",
                "push rcx",
                "mov rcx, rsp",
                // The interrupted code's stack pointer.
                "mov rsp, [rcx + 40]",
                "sub rsp, {distance}",
                "and rsp, -16",
                // The frame (ss, rsp, flags, cs, rip), then rax and rcx.
                "push qword ptr [rcx + 48]",
                "push qword ptr [rcx + 40]",
                "push qword ptr [rcx + 32]",
                "push qword ptr [rcx + 24]",
                "push qword ptr [rcx + 16]",
                "push qword ptr [rcx + 8]",
                "push qword ptr [rcx]",
                "push rdx",
                "push rsi",
                "push rdi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                // 14 words were pushed, so the stack is aligned to 16 bytes again.
                "sub rsp, 512",
                "fxsave [rsp]",
                $($before,)*
                "call {rust}",
                "fxrstor [rsp]",
                "add rsp, 512",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop rax",
                "iretq",
                "/* {noted} */",
                distance = const DISTANCE,
                noted = const offset_of!(Cpu, noted),
                rust = sym $rust,
            )
        }
    };
}

rust_handler! {
    /// Active messages.
    message => kernel::message::interrupt
}
rust_handler! {
    /// Active messages, with a note of the time at which Rust begins.
    message_noted => kernel::message::interrupt,
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov gs:[{noted}], rax"
}
rust_handler! {
    /// Active messages that use the slot of a CPU.
    slot => kernel::message::slot::interrupt
}
rust_handler! {
    /// An active message with a vector of its own.
    direct<D: Direct> => kernel::message::direct::entered::<D>
}
rust_handler! {
    /// The interrupt of `PASS`, which is taken after earlier messages.
    pass => kernel::message::direct::passed
}
rust_handler! {
    /// A notification of threads that wait.
    notify => kernel::condvar::interrupt
}
rust_handler! {
    /// The timer.
    timer => kernel::schedule::timer_interrupt
}

macro_rules! short_handlers {
    ($kind:tt: $kick:ident, $raw:ident, $save:literal, $restore:literal) => {
        /// The handler that wakes a halted processor: its return is enough.
        #[unsafe(naked)]
        unsafe extern "C" fn $kick() {
            naked_asm!(
                "push rax",
                $save,
                end_of_interrupt!($kind),
                $restore,
                "pop rax",
                "iretq",
                "/* {apic} */",
                apic = sym apic::REGISTERS,
            )
        }

        /// The handler that notes the time.
        #[unsafe(naked)]
        unsafe extern "C" fn $raw() {
            naked_asm!(
                "push rax",
                "push rdx",
                "rdtsc",
                "shl rdx, 32",
                "or rax, rdx",
                "mov gs:[{noted}], rax",
                "push rcx",
                end_of_interrupt!($kind),
                "pop rcx",
                "pop rdx",
                "pop rax",
                "iretq",
                "/* {apic} */",
                noted = const offset_of!(Cpu, noted),
                apic = sym apic::REGISTERS,
            )
        }
    };
}

short_handlers!(x: kick_x, raw_x, "", "");
short_handlers!(x2: kick_x2, raw_x2, "push rcx\npush rdx", "pop rdx\npop rcx");

/// The handler that notes the time of an `int` instruction, after which the APIC expects no end of
/// interrupt.
#[unsafe(naked)]
unsafe extern "C" fn instruction() {
    naked_asm!(
        "push rax",
        "push rdx",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov gs:[{noted}], rax",
        "pop rdx",
        "pop rax",
        "iretq",
        noted = const offset_of!(Cpu, noted),
    )
}

/// The handler of spurious interrupts, after which the APIC expects no end of interrupt.
#[unsafe(naked)]
unsafe extern "C" fn spurious() {
    naked_asm!("iretq")
}

/// The common part of exceptions. The stack holds the number and the error code, above them the
/// frame. Saves all registers for the report.
#[unsafe(naked)]
unsafe extern "C" fn exception() {
    naked_asm!(
        "push rax",
        "push rbx",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push rbp",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov rdi, rsp",
        "and rsp, -16",
        "call {report}",
        "ud2",
        report = sym fault::exception,
    )
}

/// Defines the handlers of exceptions: one without an error code pushes a zero in its place.
macro_rules! exceptions {
    ($($name:ident: $vector:literal, $push:literal;)*) => {
        $(
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                naked_asm!($push, "push {vector}", "jmp {common}",
                    vector = const $vector, common = sym exception)
            }
        )*

        /// Returns the handlers of exceptions, by vector.
        pub(super) fn exceptions() -> [usize; 32] {
            let mut table = [unexpected(); 32];
            $(table[$vector] = $name as *const () as usize;)*
            table
        }
    };
}

exceptions! {
    e0: 0, "push 0"; e1: 1, "push 0"; e2: 2, "push 0"; e3: 3, "push 0";
    e4: 4, "push 0"; e5: 5, "push 0"; e6: 6, "push 0"; e7: 7, "push 0";
    e8: 8, ""; e9: 9, "push 0"; e10: 10, ""; e11: 11, "";
    e12: 12, ""; e13: 13, ""; e14: 14, ""; e15: 15, "push 0";
    e16: 16, "push 0"; e17: 17, ""; e18: 18, "push 0"; e19: 19, "push 0";
    e20: 20, "push 0"; e21: 21, ""; e28: 28, "push 0"; e29: 29, "";
    e30: 30, "";
}

/// The handler of vectors that no known device uses.
#[unsafe(naked)]
unsafe extern "C" fn stray() {
    naked_asm!("push 0", "push 256", "jmp {common}", common = sym exception)
}

/// Returns the handler of vectors that no known device uses, which reports the interrupt.
pub(super) fn unexpected() -> usize {
    stray as *const () as usize
}

/// Returns a handler that does nothing, for messages that come too late.
pub(crate) fn nothing() -> usize {
    let (x, x2) = (kick_x as *const (), kick_x2 as *const ());
    if apic::is_x2() { x2 as usize } else { x as usize }
}

/// Returns the handlers of interrupts, with their vectors.
pub(super) fn interrupts(x2: bool) -> [(u8, usize); 10] {
    let (kick, raw) = if x2 {
        (kick_x2 as *const (), raw_x2 as *const ())
    } else {
        (kick_x as *const (), raw_x as *const ())
    };
    [
        (vectors::KICK, kick),
        (vectors::RAW, raw),
        (vectors::INSTRUCTION, instruction as *const ()),
        (vectors::MESSAGE, message as *const ()),
        (vectors::MESSAGE_NOTED, message_noted as *const ()),
        (vectors::NOTIFY, notify as *const ()),
        (vectors::SLOT, slot as *const ()),
        (vectors::PASS, pass as *const ()),
        (vectors::TIMER, timer as *const ()),
        (vectors::SPURIOUS, spurious as *const ()),
    ]
    .map(|(vector, handler)| (vector, handler as usize))
}
