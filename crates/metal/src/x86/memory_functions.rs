//! The functions that compilers call to copy, to fill and to compare memory: the target's own
//! library leaves them to the C library, of which there is none here.
//!
//! No one changes the direction flag, so interrupts need not clear it: the copy that goes downwards
//! is a loop.

use core::arch::naked_asm;

/// Copies `length` bytes from `from` to `to`; returns `to`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

/// Copies like `memcpy`, where both may overlap.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdi",
        "sub rcx, rsi",
        // As unsigned numbers: `to` is below `from`, or behind its end.
        "cmp rcx, rdx",
        "jb 2f",
        "mov rcx, rdx",
        "rep movsb",
        "ret",
        "2:",
        "test rdx, rdx",
        "je 3f",
        "mov cl, [rsi + rdx - 1]",
        "mov [rdi + rdx - 1], cl",
        "dec rdx",
        "jmp 2b",
        "3:",
        "ret",
    )
}

/// Fills `length` bytes with the low byte of `value`; returns `to`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memset(to: *mut u8, value: i32, length: usize) -> *mut u8 {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret",)
}

/// Compares `length` bytes: less than, equal to or more than zero.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    naked_asm!(
        "xor ecx, ecx",
        "2:",
        "cmp rcx, rdx",
        "je 3f",
        "movzx eax, byte ptr [rdi + rcx]",
        "movzx r8d, byte ptr [rsi + rcx]",
        "inc rcx",
        "sub eax, r8d",
        "je 2b",
        "ret",
        "3:",
        "xor eax, eax",
        "ret",
    )
}

/// Compares `length` bytes: zero if they are equal.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    naked_asm!("jmp {}", sym memcmp)
}

/// Length of a text that ends with a zero byte.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn strlen(text: *const u8) -> usize {
    naked_asm!(
        "xor eax, eax",
        "2:",
        "cmp byte ptr [rdi + rax], 0",
        "je 3f",
        "inc rax",
        "jmp 2b",
        "3:",
        "ret",
    )
}

/// Named by precompiled code of the target's library, and never called: a panic ends the machine.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// As above.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    super::power::end(super::power::Outcome::Panicked)
}
