//! Detects filters of system calls (seccomp) before the program installs them.
//!
//! | installed by | detected |
//! |---|---|
//! | `prctl(PR_SET_SECCOMP, …)` | yes |
//! | `syscall(SYS_seccomp, …)`, which libseccomp calls, and `syscall(SYS_prctl, …)` | yes |
//! | `prctl(PR_SET_TSC, PR_TSC_SIGSEGV)`, which forbids the CPU's counter | yes |
//! | an instruction of the program's own | no |
//! | a parent, before this program was executed (containers, systemd) | no |
//!
//! At that time the library prepares everything that it will need, and from then on it does only
//! what is necessary: all code that would make a system call other than `futex` asks
//! `antiphon_linux::filtered`. A filter that is not detected must allow what the README lists; a
//! filter that answers with an error is tolerated in any case.
//!
//! As in [`crate::sharing`], the entries jump to the C library's functions with the arguments and
//! the stack of the caller. They are in the path of each `syscall` of the program, so for other
//! calls they only compare a number.

use core::ffi::{c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::{expect_filter, filtered, forbid_counter};

use crate::abi::Mutex;
use crate::real::{self, forward};
use crate::sharing::address;
use crate::{mode, recorder, thread};

/// The addresses of the C library's functions; null until they are looked up.
static SYSCALL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static PRCTL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const SECCOMP: i32 = 317;
    pub(super) const PRCTL: i32 = 157;
}
#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const SECCOMP: i32 = 277;
    pub(super) const PRCTL: i32 = 167;
}
const _: () = assert!(libc::SYS_seccomp == number::SECCOMP as c_long);
const _: () = assert!(libc::SYS_prctl == number::PRCTL as c_long);
const PR_SET_SECCOMP: i32 = 22;
const PR_SET_TSC: i32 = 26;
const _: () = assert!(libc::PR_SET_SECCOMP == PR_SET_SECCOMP && libc::PR_SET_TSC == PR_SET_TSC);

extern "C" fn before_syscall(call: c_long, a: usize, b: usize, c: usize) -> *const c_void {
    if call == libc::SYS_seccomp {
        const STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;
        const FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
        // Without a program, the call only asks whether the kernel has filters.
        if (a, b) == (STRICT, 0) {
            expect_strict();
        } else if a == FILTER && c != 0 {
            expect();
        }
    } else if call == libc::SYS_prctl {
        before_set(a as c_int, b, c);
    }
    found(&SYSCALL, address(&real::SYSCALL))
}

extern "C" fn before_prctl(option: c_int, mode: usize, program: usize) -> *const c_void {
    before_set(option, mode, program);
    found(&PRCTL, address(&real::PRCTL))
}

fn before_set(option: c_int, mode: usize, program: usize) {
    const STRICT: usize = libc::SECCOMP_MODE_STRICT as usize;
    const FILTER: usize = libc::SECCOMP_MODE_FILTER as usize;
    const KILLS: usize = libc::PR_TSC_SIGSEGV as usize;
    match (option, mode) {
        (libc::PR_SET_SECCOMP, STRICT) => expect_strict(),
        (libc::PR_SET_SECCOMP, FILTER) if program != 0 => expect(),
        (libc::PR_SET_TSC, KILLS) => forbid_counter(),
        _ => {}
    }
}

/// Strict mode leaves only `read`, `write`, `exit` and `sigreturn`, and forbids the CPU's counter:
/// nothing can be timed or waited for any more. It applies to the calling thread and its children;
/// programs that use it have no other thread.
#[cold]
fn expect_strict() {
    expect();
    recorder::stop();
    forbid_counter();
}

fn found(place: &AtomicPtr<c_void>, function: *const c_void) -> *const c_void {
    place.store(function.cast_mut(), Relaxed);
    function
}

#[cold]
fn expect() {
    if filtered() || mode::disabled() {
        return;
    }
    // Enters the process and the calling thread into the recording.
    recorder::enter();
    // From now on the recording doesn't grow.
    antiphon_record::freeze();
    if mode::mode() == mode::OURS {
        thread::make_ready();
    }
    expect_filter(own_id);
}

/// The kernel's id of the calling thread, from the C library: it stores the id in a mutex, and
/// locks a free mutex without a system call.
fn own_id() -> u32 {
    // For this kind, the C library always stores the owner.
    const ERROR_CHECKING: c_int = libc::PTHREAD_MUTEX_ERRORCHECK;
    let mut mutex = MaybeUninit::<Mutex>::zeroed();
    let at = mutex.as_mut_ptr();
    // SAFETY: a mutex consists of atomics, for which zero is valid.
    let mutex = unsafe { mutex.assume_init_ref() };
    mutex.set_kind(ERROR_CHECKING);
    if forward!(MUTEX_LOCK(at.cast())) != 0 {
        return 1;
    }
    let id = mutex.noted_owner();
    // The mutex is ours, so this can't fail.
    let _ = forward!(MUTEX_UNLOCK(at.cast()));
    id
}

/// Defines functions that jump to the address in `$place`. If the first argument is `$first` or
/// `$second`, or `$place` is null, they call `$before` first, and jump to the address that it
/// returns.
macro_rules! unless {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty
        = $place:ident, [$first:expr, $second:expr], $before:path;)*) => {$(
        /// The C library's function of this name.
        ///
        /// # Safety
        ///
        /// The conditions of the C library.
        // SAFETY: it jumps with the arguments and the stack unchanged. `rax` carries nothing,
        // because no argument is a floating-point number.
        #[unsafe(naked)]
        // SAFETY: the C library's name and signature; replacing that function is the purpose.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "cmp edi, {first}",
                "je 22f",
                "cmp edi, {second}",
                "je 22f",
                "mov rax, qword ptr [rip + {place}]",
                "test rax, rax",
                "jz 22f",
                "jmp rax",
                "22:",
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9",
                // The stack is aligned for a call.
                "sub rsp, 8",
                "call {before}",
                "add rsp, 8",
                "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp rax",
                first = const $first,
                second = const $second,
                place = sym $place,
                before = sym $before,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!(
                "cmp w0, {first}",
                "b.eq 22f",
                "cmp w0, {second}",
                "b.eq 22f",
                "adrp x16, {place}",
                "ldr x16, [x16, :lo12:{place}]",
                "cbz x16, 22f",
                "br x16",
                "22:",
                "stp x29, x30, [sp, -80]!",
                "stp x0, x1, [sp, 16]", "stp x2, x3, [sp, 32]",
                "stp x4, x5, [sp, 48]", "stp x6, x7, [sp, 64]",
                "bl {before}",
                "mov x16, x0",
                "ldp x0, x1, [sp, 16]", "ldp x2, x3, [sp, 32]",
                "ldp x4, x5, [sp, 48]", "ldp x6, x7, [sp, 64]",
                "ldp x29, x30, [sp], 80",
                "br x16",
                first = const $first,
                second = const $second,
                place = sym $place,
                before = sym $before,
            );
        }
    )*};
}

unless! {
    syscall(
        _number: c_long, _a: usize, _b: usize, _c: usize, _d: usize, _e: usize, _f: usize
    ) -> c_long = SYSCALL, [number::SECCOMP, number::PRCTL], before_syscall;
    prctl(_option: c_int, _a: usize, _b: usize, _c: usize, _d: usize) -> c_int
        = PRCTL, [PR_SET_SECCOMP, PR_SET_TSC], before_prctl;
}
