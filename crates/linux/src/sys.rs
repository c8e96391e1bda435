//! System calls that leave `errno` as it was.
//!
//! A lock call must not change `errno`: POSIX lets `pthread_mutex_lock` set nothing, and programs
//! read `errno` across it. Every system call of this crate that a lock can reach goes through here.
//! The calls use the instruction and not the C library's wrappers. Some wrappers (`open`, `read`,
//! `nanosleep`) are cancellation points, and a cancellation must not unwind a lock. And other
//! libraries may interpose any of them, even `syscall`, as the preload library does.

use core::ffi::{CStr, c_int, c_long};

use crate::filter;

/// The error code of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

/// Runs `f` and restores `errno`.
pub(crate) fn errno_kept<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the C library's `errno` of this thread is always readable.
    let saved = unsafe { *libc::__errno_location() };
    let result = f();
    // SAFETY: `errno` is always writable. Its location is requested again, because `f` is arbitrary
    // code.
    unsafe { *libc::__errno_location() = saved };
    result
}

/// Makes one optional system call; `errno` stays unchanged.
///
/// # Errors
///
/// The kernel's error; `EPERM`, without a call of the kernel, while a [filter](crate::filter) is in
/// force.
///
/// # Safety
///
/// The contract is that of the call itself: pointer arguments must be valid for its accesses.
#[inline]
pub(crate) unsafe fn call<const N: usize>(
    number: c_long,
    args: [usize; N],
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    filter::optional(|| unsafe { needed(number, args) }).unwrap_or(Err(Errno(libc::EPERM)))
}

/// Makes one system call that a wait can't do without, whatever filter is in force.
///
/// # Errors
///
/// The kernel's error.
///
/// # Safety
///
/// See [`call`].
pub(crate) unsafe fn needed<const N: usize>(
    number: c_long,
    args: [usize; N],
) -> Result<usize, Errno> {
    let mut all = [0_usize; 6];
    all[..N].copy_from_slice(&args);
    // SAFETY: the caller guarantees the arguments; the kernel ignores those it does not take.
    let result = unsafe { instruction(number, all) };
    // Results in the last page of addresses are error codes.
    if (-4095..0).contains(&result) { Err(Errno(-result as c_int)) } else { Ok(result as usize) }
}

/// Makes one system call; returns the kernel's result unchanged, an error as a negative code.
///
/// # Safety
///
/// See [`call`].
#[doc(hidden)]
#[cfg(target_arch = "x86_64")]
pub unsafe fn instruction(number: c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller's promise. The kernel preserves all registers except these.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0],
            in("rsi") args[1],
            in("rdx") args[2],
            in("r10") args[3],
            in("r8") args[4],
            in("r9") args[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes one system call; returns the kernel's result unchanged, an error as a negative code.
///
/// # Safety
///
/// See [`call`].
#[doc(hidden)]
#[cfg(target_arch = "aarch64")]
pub unsafe fn instruction(number: c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller's promise. The kernel preserves all registers except this one.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1],
            in("x2") args[2],
            in("x3") args[3],
            in("x4") args[4],
            in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// Makes one system call; returns the kernel's result unchanged, an error as a negative code.
///
/// # Safety
///
/// See [`call`].
#[doc(hidden)]
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub unsafe fn instruction(number: c_long, args: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = args;
    errno_kept(|| {
        // SAFETY: the caller's promise.
        let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
        // SAFETY: `errno` of this thread is always accessible.
        if result == -1 { -unsafe { *libc::__errno_location() } as isize } else { result as isize }
    })
}

/// Reads the beginning of a small file, such as those of `/proc` and `/sys`.
///
/// Returns `None` if it can't be opened or read. Does not allocate.
pub(crate) fn read_file<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    let at = libc::AT_FDCWD as isize as usize;
    // SAFETY: `path` is a zero-terminated string, alive for the call.
    let fd = unsafe { call(libc::SYS_openat, [at, path.as_ptr() as usize, flags]) }.ok()?;
    // SAFETY: the buffer is writable and has the given length.
    let read = unsafe { call(libc::SYS_read, [fd, buffer.as_mut_ptr() as usize, buffer.len()]) };
    // SAFETY: `fd` was opened above and is known to no other thread. A failed close of a file that
    // was only read loses nothing.
    let _ = unsafe { call(libc::SYS_close, [fd]) };
    buffer.get(..read.ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_leaves_errno_alone() {
        // SAFETY: `errno` of this thread is always accessible.
        unsafe { *libc::__errno_location() = 77 };
        // SAFETY: closes no file: there is no descriptor with that number.
        let refused = unsafe { call(libc::SYS_close, [usize::MAX]) };
        assert_eq!(refused, Err(Errno(libc::EBADF)));
        // SAFETY: `errno` of this thread is always readable.
        assert_eq!(unsafe { *libc::__errno_location() }, 77);
    }

    #[test]
    fn reads_the_beginning_of_a_file() {
        let mut buffer = [0; 8];
        assert_eq!(read_file(c"/proc/self/comm", &mut buffer).map(<[u8]>::is_empty), Some(false));
        assert_eq!(read_file(c"/proc/self/no such file", &mut buffer), None);
    }
}
