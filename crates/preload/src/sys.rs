//! System calls that are not cancellation points and don't change `errno`.

use core::ffi::{CStr, c_int, c_long};

pub(crate) use antiphon_linux::yield_now;
use antiphon_linux::{Linux, optional, system_call};
use antiphon_platform::Platform as _;

/// Runs `f` and restores `errno`.
pub(crate) fn errno_kept<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: `errno` of this thread always exists.
    let saved = unsafe { *libc::__errno_location() };
    let result = f();
    // SAFETY: `errno` of this thread always exists.
    unsafe { *libc::__errno_location() = saved };
    result
}

/// Makes a system call that the library can do without; `None` if the kernel refuses it, or a
/// filter might kill the process for it: with a filter in force, the call is not made.
///
/// # Safety
///
/// The conditions of the call: pointers among the arguments are valid for its use of them.
pub(crate) unsafe fn call(number: c_long, args: [usize; 4]) -> Option<usize> {
    // SAFETY: the caller's promise; the kernel ignores arguments that it does not take.
    let make = || unsafe { system_call(number, [args[0], args[1], args[2], args[3], 0, 0]) };
    let result = optional(make)?;
    // The last page of addresses encodes errors.
    (!(-4095..0).contains(&result)).then_some(result as usize)
}

/// The process id, from the kernel: libraries that fake the clock may fake `getpid`, too.
pub(crate) fn pid() -> u32 {
    // SAFETY: the call takes no arguments. Only a filter makes it fail: then the process is the
    // child of one that knew its number, and the calling thread is its first.
    unsafe { call(libc::SYS_getpid, [0; 4]) }.map_or_else(|| Linux::thread().0, |pid| pid as u32)
}

/// The user and the group that the program runs as; the largest numbers where that is not known.
pub(crate) fn user() -> (u32, u32) {
    let [user, group] = [libc::SYS_getuid, libc::SYS_getgid].map(|number| {
        // SAFETY: the call takes no arguments.
        unsafe { call(number, [0; 4]) }.map_or(u32::MAX, |id| id as u32)
    });
    (user, group)
}

/// Reads these pieces of this process's memory, addresses and lengths, one after the other. Returns
/// the number of bytes before the first that can't be read. `None` if a filter forbids the call.
pub(crate) fn read_own(pieces: [(usize, usize); 2], into: &mut [u8]) -> Option<usize> {
    let ours = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let theirs = pieces.map(|(at, length)| libc::iovec {
        iov_base: core::ptr::without_provenance_mut(at),
        iov_len: length,
    });
    let args = [pid() as usize, (&raw const ours) as usize, 1, theirs.as_ptr() as usize, 2, 0];
    // SAFETY: the kernel writes to memory that is ours, at most its length, and checks the
    // addresses that it reads.
    let read = optional(|| unsafe { system_call(libc::SYS_process_vm_readv, args) })?;
    let refused = read < 0 && read != -(libc::EFAULT as isize);
    (!refused).then(|| usize::try_from(read).unwrap_or(0))
}

/// The inode number of the file at that path, and its modification time in nanoseconds of the wall
/// clock.
pub(crate) fn number(path: &CStr) -> Option<(u64, u64)> {
    let at = libc::AT_FDCWD as isize as usize;
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let args = [at, path.as_ptr() as usize, status.as_mut_ptr() as usize, 0];
    // SAFETY: the path ends in zero, and the kernel writes the structure; both live for the call.
    unsafe { call(libc::SYS_newfstatat, args) }?;
    // SAFETY: written above, and zero is valid for all fields.
    let status = unsafe { status.assume_init() };
    let modified_ns =
        status.st_mtime.wrapping_mul(1_000_000_000).wrapping_add(status.st_mtime_nsec);
    Some((status.st_ino, modified_ns as u64))
}

/// Reads the target of the symbolic link at that path. Returns its length, 0 if it does not fit or
/// can't be read.
pub(crate) fn leads_to(link: &CStr, into: &mut [u8]) -> usize {
    let at = libc::AT_FDCWD as isize as usize;
    let args = [at, link.as_ptr() as usize, into.as_mut_ptr() as usize, into.len()];
    // SAFETY: the path ends in zero, the buffer is ours and has this length.
    let length = unsafe { call(libc::SYS_readlinkat, args) }.unwrap_or(0);
    // The last byte is for a zero: a path that fills it is too long.
    let length = if length < into.len() { length } else { 0 };
    into[length..].fill(0);
    length
}

/// An open file, closed when dropped.
pub(crate) struct File(usize);

impl File {
    /// Opens the file at that path, with the flags of `open` and `O_CLOEXEC`.
    pub(crate) fn open(path: &CStr, flags: c_int) -> Option<Self> {
        let at = libc::AT_FDCWD as isize as usize;
        let args = [at, path.as_ptr() as usize, (flags | libc::O_CLOEXEC) as usize, 0];
        // SAFETY: the path ends in zero and is alive for the call.
        unsafe { call(libc::SYS_openat, args) }.map(Self)
    }

    /// The file of that descriptor.
    ///
    /// # Safety
    ///
    /// The descriptor is open, and no other code uses it.
    pub(crate) unsafe fn from_descriptor(descriptor: usize) -> Self {
        Self(descriptor)
    }

    /// The file's descriptor.
    pub(crate) fn descriptor(&self) -> c_int {
        self.0 as c_int
    }

    /// Reads from the current position, and returns the number of bytes; `None` at the end, or on
    /// an error.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        let args = [self.0, buffer.as_mut_ptr() as usize, buffer.len(), 0];
        // SAFETY: the buffer is ours and has this length.
        unsafe { call(libc::SYS_read, args) }.filter(|&length| length != 0)
    }

    /// The length of the file, in bytes; 0 if that is not known.
    pub(crate) fn length(&self) -> u64 {
        let args = [self.0, 0, libc::SEEK_END as usize, 0];
        // SAFETY: the call moves the position of a file that only this code uses.
        unsafe { call(libc::SYS_lseek, args) }.map_or(0, |length| length as u64)
    }

    /// Maps the file's first `length` bytes, shared, readable and writable. They are never
    /// unmapped.
    pub(crate) fn map(&self, length: usize) -> Option<*mut core::ffi::c_void> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = c_int::try_from(self.0).ok()?;
        let at = errno_kept(|| {
            // SAFETY: a new mapping at an address of the kernel's choice affects no memory in use.
            unsafe { libc::mmap(core::ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0) }
        });
        (at != libc::MAP_FAILED).then_some(at)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: only we use the descriptor. A failed close loses nothing, because nothing is
        // buffered.
        let _ = unsafe { call(libc::SYS_close, [self.0, 0, 0, 0]) };
    }
}

/// Wakes all threads that sleep on `word`, in all processes that share it. The memory may be gone.
pub(crate) fn wake_all(word: *const core::sync::atomic::AtomicU32) {
    let args = [word.addr(), libc::FUTEX_WAKE as usize, c_int::MAX as usize, 0, 0, 0];
    // SAFETY: the kernel uses the address only as a key. Where futexes are refused, no thread
    // sleeps.
    let _ = unsafe { system_call(libc::SYS_futex, args) };
}
