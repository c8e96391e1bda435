//! The choice of the signal for glances, and its handler.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::io;

use super::request::{REGISTERS, REQUEST};

/// The signal once it is reserved; 0 before. One thread writes it at a time.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Reserves the signal and installs our handler. At most one caller at a time.
pub(super) fn take() -> io::Result<i32> {
    if !cfg!(target_arch = "x86_64") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    // Relaxed: one caller at a time.
    let known = SIGNAL.load(Relaxed);
    if known != 0 {
        return if is_ours(known) { Ok(known) } else { Err(taken()) };
    }
    let is_free = |number: &c_int| action(*number).is_some_and(|it| it.sa_sigaction == 0);
    let free = (libc::SIGRTMIN()..=libc::SIGRTMAX()).rev().find(is_free).ok_or_else(taken)?;
    // SAFETY: all zero bits are a valid `sigaction`.
    let mut ours = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    ours.sa_sigaction = handler();
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler may run anywhere: it reads a stack, and writes a static.
    if unsafe { libc::sigaction(free, &raw const ours, ptr::null_mut()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    SIGNAL.store(free, Relaxed);
    Ok(free)
}

/// Returns whether the signal's handler is still ours.
pub(super) fn is_ours(number: c_int) -> bool {
    action(number).is_some_and(|it| it.sa_sigaction == handler())
}

pub(super) fn taken() -> io::Error {
    let what = "the program has handlers for all signals that could be used to look at threads";
    io::Error::new(io::ErrorKind::AlreadyExists, what)
}

fn handler() -> usize {
    on_signal as extern "C" fn(_, _, _) as usize
}

fn action(number: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: a query, which writes only `action`.
    let asked = unsafe { libc::sigaction(number, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: written by the call; all zero bits are valid, too.
    (asked == 0).then(|| unsafe { action.assume_init() })
}

extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    crate::sys::errno_kept(|| {
        // SAFETY: takes no arguments.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
        // SAFETY: the kernel passes the context of this thread, which it has interrupted.
        unsafe { REQUEST.answer(thread, || registers(context)) };
    });
}

/// The registers of the context, in the order of their DWARF numbers (System V ABI, AMD64, figure
/// 3.36).
///
/// # Safety
///
/// `context` must come from the kernel, for a signal handler that still runs.
#[cfg(target_arch = "x86_64")]
unsafe fn registers(context: *mut c_void) -> [u64; REGISTERS] {
    const ORDER: [c_int; REGISTERS] = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
        libc::REG_RIP,
    ];
    // SAFETY: the caller's contract.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    ORDER.map(|number| context.uc_mcontext.gregs[number as usize] as u64)
}

/// Zeroes: there are no glances on this architecture.
///
/// # Safety
///
/// None; `unsafe` only to match the function for x86-64.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn registers(_: *mut c_void) -> [u64; REGISTERS] {
    [0; REGISTERS]
}
