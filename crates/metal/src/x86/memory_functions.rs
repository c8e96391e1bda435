//! The functions that compilers call to copy, fill and compare memory: the target's own library
//! leaves them to the C library, which does not exist here.
//!
//! No code changes the direction flag, so handlers need not clear it: the downward copy is a loop.

use core::arch::naked_asm;

/// Copies `length` bytes from `from` to `to`; returns `to`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memcpy(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

/// Copies like `memcpy`; the two ranges may overlap.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn memmove(to: *mut u8, from: *const u8, length: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdi",
        "sub rcx, rsi",
        // As an unsigned difference: `to` is below `from`, or after its end.
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

/// Compares `length` bytes; returns a number below, equal to or above zero.
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

/// Compares `length` bytes; returns zero if they are equal.
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn bcmp(one: *const u8, other: *const u8, length: usize) -> i32 {
    naked_asm!("jmp {}", sym memcmp)
}

/// Returns the length of a zero-terminated string.
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

/// Precompiled code of the target's library names this symbol and never calls it: a panic ends the
/// machine.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// As `rust_eh_personality`: named, and never called.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    super::power::end(super::power::Outcome::Panicked)
}
