//! The start of processors: from the entry of a loader, in 32-bit mode, and from the reset of
//! another processor, in 16-bit mode, to Rust in long mode.
//!
//! | loader | finds the entry by | leaves | address of its information |
//! |---|---|---|---|
//! | PVH: `-kernel` of QEMU and others | a note | | `ebx` |
//! | multiboot2: GRUB | a header at the beginning of the image | a number in `eax` | `ebx` |
//!
//! On a machine with EFI, too, GRUB comes here in 32-bit mode, after it has ended the boot
//! services.
//!
//! The boot page tables map the first 4 GiB at their own addresses by pages of 2 MiB;
//! [`paging`](super::paging) makes the final ones. Other processors go straight from 16-bit to
//! 64-bit mode, with the final tables: their code is copied to [`TRAMPOLINE`], where it finds four
//! words that were written for the one that is started.

use core::arch::global_asm;

use super::paging::{STACK_SIZE, STACK_STRIDE};
use crate::kernel;

/// Address of the code of starting processors: below 1 MiB, at a multiple of a page. No other data
/// is kept there, because the memory map leaves out the first megabyte.
pub(crate) const TRAMPOLINE: usize = 0x8000;
/// Address of a starting processor's parameters: page table, stack, argument and entry.
pub(crate) const PARAMETERS: usize = TRAMPOLINE + 0xf00;

/// Size of the memory below the boot stack that the final page tables do not map, in bytes: as much
/// as below other stacks.
pub(crate) const GUARD: usize = STACK_STRIDE - STACK_SIZE;

global_asm!(
    // The header for multiboot2, which must be within the first 32 KiB of the file: magic number,
    // architecture, length, checksum; a tag with the entry; the end tag.
    ".pushsection .multiboot2, \"a\"",
    ".balign 8",
    "multiboot2_begin:",
    ".long 0xe85250d6, 0, multiboot2_end - multiboot2_begin",
    ".long -(0xe85250d6 + (multiboot2_end - multiboot2_begin))",
    ".short 3, 0",
    ".long 12, multiboot2_start, 0",
    ".short 0, 0",
    ".long 8",
    "multiboot2_end:",
    ".popsection",

    // The note that gives a loader the 32-bit entry: Xen's number 18.
    ".pushsection .note.Xen, \"a\", @note",
    ".balign 4",
    ".long 4, 8, 18",
    ".asciz \"Xen\"",
    ".quad pvh_start",
    ".popsection",

    ".pushsection .bss.boot, \"aw\", @nobits",
    ".balign 4096",
    "boot_pml4: .skip 4096",
    "boot_pdpt: .skip 4096",
    "boot_pds: .skip 4 * 4096",
    // The pages that the final tables leave out.
    ".skip {guard}",
    ".global boot_stack",
    "boot_stack: .skip 65536",
    ".global boot_stack_top",
    "boot_stack_top:",
    ".popsection",

    ".pushsection .rodata.boot, \"a\"",
    ".balign 8",
    "boot_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff",
    "boot_gdtr: .word 23",
    ".quad boot_gdt",
    ".popsection",

    ".pushsection .boot, \"ax\"",
    ".code32",
    ".global pvh_start",
    "pvh_start:",
    "xor eax, eax",
    "multiboot2_start:",
    "cli",
    "cld",
    "mov esp, offset boot_stack_top",
    // The address of the loader's information stays in ebx, and the loader's number in ebp.
    "mov ebp, eax",
    "mov edi, offset boot_pds",
    "xor ecx, ecx",
    "2:",
    "mov eax, ecx",
    "shl eax, 21",
    // Present, writable, 2 MiB.
    "or eax, 0x83",
    "mov dword ptr [edi + ecx * 8], eax",
    "mov dword ptr [edi + ecx * 8 + 4], 0",
    "inc ecx",
    "cmp ecx, 2048",
    "jb 2b",
    "mov edi, offset boot_pdpt",
    "mov eax, offset boot_pds",
    "or eax, 3",
    "xor ecx, ecx",
    "3:",
    "mov dword ptr [edi + ecx * 8], eax",
    "add eax, 4096",
    "inc ecx",
    "cmp ecx, 4",
    "jb 3b",
    "mov eax, offset boot_pdpt",
    "or eax, 3",
    "mov dword ptr [boot_pml4], eax",
    // PAE, and SSE for the compiler's code; all other features that firmware switched on are off.
    "mov eax, 0x620",
    "mov cr4, eax",
    "mov eax, offset boot_pml4",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "rdmsr",
    "or eax, 0x100",
    "wrmsr",
    // Paging, write protection, no emulation of floating point, caches on.
    "mov eax, cr0",
    "and eax, 0x9ffffff3",
    "or eax, 0x80010003",
    "mov cr0, eax",
    "lgdt [boot_gdtr]",
    "push 8",
    "mov eax, offset boot_long",
    "push eax",
    "retf",
    ".code64",
    "boot_long:",
    "mov ax, 16",
    "mov ds, ax",
    "mov es, ax",
    "mov ss, ax",
    "mov fs, ax",
    "mov gs, ax",
    "lea rsp, [rip + boot_stack_top]",
    // The upper halves have no defined value.
    "mov edi, ebx",
    "mov esi, ebp",
    "xor ebp, ebp",
    "call {first}",
    "ud2",
    ".popsection",

    // The code of starting processors, which is copied to `TRAMPOLINE`.
    ".pushsection .rodata.trampoline, \"a\"",
    ".balign 16",
    ".global trampoline_begin",
    "trampoline_begin:",
    ".code16",
    "cli",
    "cld",
    "xor ax, ax",
    "mov ds, ax",
    "lgdt [{base} + 0x118]",
    "mov eax, 0x620",
    "mov cr4, eax",
    "mov eax, dword ptr [{base} + 0xf00]",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "rdmsr",
    "or eax, 0x100",
    "wrmsr",
    // Protection and paging at once, into long mode.
    "mov eax, 0x80010033",
    "mov cr0, eax",
    // A far jump with a 32-bit address.
    ".byte 0x66, 0xea",
    ".long {base} + (trampoline_long - trampoline_begin)",
    ".word 8",
    ".code64",
    "trampoline_long:",
    "mov ax, 16",
    "mov ds, ax",
    "mov es, ax",
    "mov ss, ax",
    "mov fs, ax",
    "mov gs, ax",
    "mov eax, {base} + 0xf00",
    "mov rsp, [rax + 8]",
    "mov rdi, [rax + 16]",
    "mov rax, [rax + 24]",
    "xor ebp, ebp",
    "call rax",
    "ud2",
    // At a constant offset, because the operand of `lgdt` can't be a sum of symbols.
    ".org trampoline_begin + 0x100",
    ".quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff",
    ".word 23",
    ".long {base} + 0x100",
    ".global trampoline_end",
    "trampoline_end:",
    ".popsection",
    first = sym kernel::boot::first,
    base = const TRAMPOLINE,
    guard = const GUARD,
);

unsafe extern "C" {
    static trampoline_begin: u8;
    static trampoline_end: u8;
    static boot_stack: u8;
    static boot_stack_top: u8;
}

/// Returns the boot stack of the first processor: its lowest address, and the one above it. Below
/// it are [`GUARD`] bytes that are not mapped.
pub(crate) fn stack() -> (usize, usize) {
    ((&raw const boot_stack).addr(), (&raw const boot_stack_top).addr())
}

/// Copies the code of starting processors to [`TRAMPOLINE`].
///
/// # Safety
///
/// The memory at [`TRAMPOLINE`] is mapped, and no other code uses it.
pub(crate) unsafe fn place_trampoline() {
    let begin = &raw const trampoline_begin;
    let length = (&raw const trampoline_end).addr() - begin.addr();
    let to = core::ptr::with_exposed_provenance_mut::<u8>(TRAMPOLINE);
    // SAFETY: the code has that length; the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(begin, to, length) };
}
