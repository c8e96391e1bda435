//! Intercepts functions of the C library without replacing them: `vfork` and `clone`, by which a
//! child may share its parent's thread-local state, and `dlopen` and `dlmopen`, by which a program
//! may load objects that we don't reach.
//!
//! - `vfork`, and `clone` with `CLONE_VM` and without `CLONE_SETTLS`: first the calling thread
//!   leaves the light form permanently, and so does the child, which shares its state and is not
//!   registered (LIGHT-2 in `antiphon_linux::light`).
//! - `dlmopen`, and `dlopen` with `RTLD_DEEPBIND`: first the call is counted, for the report.
//!   Objects loaded this way find the C library's locks before ours.
//!
//! The entries jump to the C library's function and don't call it: `vfork` returns twice to the
//! same place on the stack, and `dlopen` depends on which code called it. `posix_spawn`, `system`
//! and `popen` create such children inside the C library, where they take no lock of ours. A
//! `clone` by `syscall` or by an instruction of the program's own is not seen.

use core::ffi::{c_char, c_int, c_long, c_void};

use crate::real::{self, Real};
use crate::recorder;

/// The address of a function of the C library; if it does not exist, of one that fails with
/// `ENOSYS`.
pub(crate) fn address<F: Copy>(of: &Real<F>) -> real::Entry {
    extern "C" fn missing() -> isize {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOSYS };
        -1
    }
    match of.get() {
        // SAFETY: `Real` asserts that `F` is a pointer.
        Ok(function) => unsafe { core::mem::transmute_copy::<F, *const c_void>(&function) },
        Err(real::Missing) => missing as *const c_void,
    }
}

extern "C" fn before_vfork() -> *const c_void {
    antiphon_linux::light::renounce();
    address(&real::VFORK)
}

extern "C" fn before_clone(_: usize, _: usize, flags: c_int) -> *const c_void {
    if flags & (libc::CLONE_VM | libc::CLONE_SETTLS) == libc::CLONE_VM {
        antiphon_linux::light::renounce();
    }
    address(&real::CLONE)
}

extern "C" fn before_dlopen(_: usize, flags: c_int) -> *const c_void {
    if flags & libc::RTLD_DEEPBIND != 0 {
        recorder::bypassed();
    }
    address(&real::DLOPEN)
}

extern "C" fn before_dlmopen(namespace: c_long) -> *const c_void {
    // Other than `LM_ID_BASE`, the namespace of the program.
    if namespace != 0 {
        recorder::bypassed();
    }
    address(&real::DLMOPEN)
}

/// Defines functions that call `$before` with their arguments, and jump to the address that it
/// returns, with the same arguments and the same stack.
macro_rules! after {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $before:path;)*) => {$(
        /// The C library's function of this name.
        ///
        /// # Safety
        ///
        /// The conditions of the C library.
        // SAFETY: it jumps with the arguments and the stack unchanged.
        #[unsafe(naked)]
        // SAFETY: the C library's name and signature; replacing that function is the purpose.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                // The stack is aligned for a call.
                "sub rsp, 8",
                "call {}",
                "add rsp, 8",
                "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp rax",
                sym $before
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "stp x29, x30, [sp, -80]!",
                "stp x0, x1, [sp, 16]", "stp x2, x3, [sp, 32]",
                "stp x4, x5, [sp, 48]", "stp x6, x7, [sp, 64]",
                "bl {}",
                "mov x16, x0",
                "ldp x0, x1, [sp, 16]", "ldp x2, x3, [sp, 32]",
                "ldp x4, x5, [sp, 48]", "ldp x6, x7, [sp, 64]",
                "ldp x29, x30, [sp], 80",
                "br x16",
                sym $before
            );
        }
    )*};
}
pub(crate) use after;

after! {
    vfork() -> libc::pid_t = before_vfork;
    __vfork() -> libc::pid_t = before_vfork;
    clone(_run: usize, _stack: *mut c_void, _flags: c_int, _argument: *mut c_void) -> c_int
        = before_clone;
    __clone(_run: usize, _stack: *mut c_void, _flags: c_int, _argument: *mut c_void) -> c_int
        = before_clone;
    dlopen(_path: *const c_char, _flags: c_int) -> *mut c_void = before_dlopen;
    dlmopen(_namespace: c_long, _path: *const c_char, _flags: c_int) -> *mut c_void
        = before_dlmopen;
}
