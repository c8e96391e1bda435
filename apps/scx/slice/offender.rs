//! A thread that does what restartable sequences forbid: a system call in the middle of one.

use std::ffi::c_char;

/// The signature that glibc registers.
const SIGNATURE: u32 = 0x5305_3053;

/// Returns the address of the calling thread's area.
pub fn area() -> Option<usize> {
    let name: *const c_char = c"__rseq_offset".as_ptr();
    // SAFETY: the name is a text with an end.
    let offset = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) }.cast::<isize>();
    // SAFETY: null, or glibc's constant of this type.
    let offset = *unsafe { offset.as_ref() }?;
    let thread: usize;
    // SAFETY: the ABI keeps the thread pointer there.
    unsafe { std::arch::asm!("mov {}, qword ptr fs:[0]", out(reg) thread) };
    Some(thread.wrapping_add_signed(offset))
}

/// Makes a system call in a sequence. Returns whether the sequence has come to its end.
pub fn offend(area: usize) -> bool {
    let done: u32;
    // SAFETY: `area` is the calling thread's; no other sequence of it runs. The call is `getpid`.
    // If the kernel aborts the sequence, it goes on behind it.
    unsafe {
        std::arch::asm!(
            ".pushsection .data.antiphon_offender, \"aw\", @progbits",
            ".balign 32",
            "31:",
            ".long 0, 0",
            ".quad 32f",
            ".quad 33f - 32f",
            ".quad 34f",
            ".popsection",
            "lea {scratch}, [rip + 31b]",
            "mov qword ptr [{area} + 8], {scratch}",
            "32:",
            "syscall",
            "nop",
            "nop",
            "33:",
            "mov {done:e}, 1",
            "jmp 35f",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long {signature}",
            "34:",
            "nop",
            "35:",
            "mov qword ptr [{area} + 8], 0",
            area = in(reg) area,
            done = inout(reg) 0_u32 => done,
            scratch = out(reg) _,
            signature = const SIGNATURE,
            inlateout("rax") libc::SYS_getpid => _,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    done != 0
}
