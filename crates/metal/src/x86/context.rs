//! The switch between threads: the callee-saved registers and the stack pointer.

use core::arch::naked_asm;

/// The stack pointer of a thread that does not run.
pub type StackPointer = usize;

/// Leaves the running thread, whose stack pointer is stored in `from`, and switches to the thread
/// whose stack pointer is `to`. Returns when another call switches back. Interrupts are off.
///
/// # Safety
///
/// `to` was stored by this function or returned by [`prepare`], and no call has switched to it
/// since.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut StackPointer, to: StackPointer) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// Prepares the stack that ends at `top` for a first switch, which calls `entry`.
///
/// # Safety
///
/// `top` is aligned to 16 bytes, the 128 bytes below it are writable, and no other code uses them.
pub unsafe fn prepare(top: usize, entry: extern "C" fn() -> !) -> StackPointer {
    // The layout in which `switch` leaves a stack: six registers and the return address. Above it,
    // a zero in place of the entry's own return address ends a backtrace.
    let words: [usize; 8] = [0, 0, 0, 0, 0, 0, entry as usize, 0];
    let at = core::ptr::with_exposed_provenance_mut::<[usize; 8]>(top - 64);
    // SAFETY: the caller's promise.
    unsafe { at.write(words) };
    top - 64
}
