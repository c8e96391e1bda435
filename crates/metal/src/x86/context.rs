//! Switching from thread to thread: the callee-saved registers and the stack pointer.

use core::arch::naked_asm;

/// Where a thread that does not run left off.
pub type StackPointer = usize;

/// Leaves the running thread, whose stack pointer is kept in `from`, and goes on with the thread
/// that was left at `to`. Returns when something goes on with the former. Interrupts are off.
///
/// # Safety
///
/// `to` was kept by this function, or prepared by [`prepare`], and has not been gone on with since.
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
/// The 128 bytes below `top`, which is aligned to 16 bytes, are writable and no one else's.
pub unsafe fn prepare(top: usize, entry: extern "C" fn() -> !) -> StackPointer {
    // As `switch` leaves a stack: six registers and the address to return to. Above it is a zero in
    // the place of the entry's own return address, which ends a backtrace.
    let words: [usize; 8] = [0, 0, 0, 0, 0, 0, entry as usize, 0];
    let at = core::ptr::with_exposed_provenance_mut::<[usize; 8]>(top - 64);
    // SAFETY: the caller's promise.
    unsafe { at.write(words) };
    top - 64
}
