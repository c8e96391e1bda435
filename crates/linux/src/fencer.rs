//! A short-lived second thread that only fences: with it, [`crate::light`] tests whether a fence
//! aborts the sequences of other threads.
//!
//! It is made by a raw `clone`, because it may be needed before `main` in a process that must not
//! notice: the C library still counts one thread, and nothing is allocated. So the thread has
//! neither a stack nor thread-local storage: it uses only registers, with all signals blocked.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::futex;
use crate::identity::Blocked;

/// Runs `f` while another thread fences as fast as it can. Returns `None`, without running `f`, if
/// the thread can't be started. Returns after that thread has ended.
pub(crate) fn while_fencing<R>(f: impl FnOnce() -> R) -> Option<R> {
    let (stop, alive) = (AtomicU32::new(0), AtomicU32::new(0));
    let started = {
        let _signals = Blocked::all();
        start(&stop, &alive)
    };
    if !started {
        return None;
    }
    let result = f();
    stop.store(1, Relaxed);
    // Acquire: the thread reads neither word again; pairs with the kernel's store when it has
    // ended.
    while alive.load(Acquire) != 0 {
        futex::yield_now();
    }
    Some(result)
}

/// Starts the thread. It ends when `stop` is set or a fence fails; the kernel then zeroes `alive`.
#[cfg(target_arch = "x86_64")]
fn start(stop: &AtomicU32, alive: &AtomicU32) -> bool {
    let flags = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    let thread: isize;
    // SAFETY: the new thread touches no memory but `stop`, which outlives it (`while_fencing`); it
    // has our stack pointer, but never uses it, and no signal makes it do so. `alive` stays valid
    // until the kernel has zeroed it. In this thread, only the named registers change.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 23f",
            "21:",
            "mov eax, {membarrier}",
            "mov edi, {fence}",
            "xor esi, esi",
            "xor edx, edx",
            "syscall",
            "test eax, eax",
            "jnz 22f",
            "cmp dword ptr [r9], 0",
            "je 21b",
            "22:",
            "mov eax, {exit}",
            "xor edi, edi",
            "syscall",
            "ud2",
            "23:",
            membarrier = const libc::SYS_membarrier,
            fence = const crate::membarrier::PRIVATE_EXPEDITED_RSEQ,
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone as isize => thread,
            in("rdi") flags as usize,
            in("rsi") 0,
            in("rdx") alive.as_ptr(),
            in("r10") alive.as_ptr(),
            in("r8") 0,
            in("r9") stop.as_ptr(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    thread > 0
}

#[cfg(not(target_arch = "x86_64"))]
fn start(_: &AtomicU32, _: &AtomicU32) -> bool {
    false
}
