//! System calls that are no cancellation points and leave `errno` alone.

use core::ffi::{CStr, c_int, c_long};

pub(crate) use antiphon_linux::yield_now;
use antiphon_linux::{Linux, optional, system_call};
use antiphon_platform::Platform as _;

/// Runs `f` and puts `errno` back to what it was.
pub(crate) fn errno_kept<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: `errno` of this thread is always there.
    let saved = unsafe { *libc::__errno_location() };
    let result = f();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = saved };
    result
}

/// Makes a system call that can be done without; `None` if the kernel refused, or would perhaps
/// kill: where a filter is in force, it is not asked.
///
/// # Safety
///
/// The conditions of the call: pointers among the arguments are good for its use of them.
pub(crate) unsafe fn call(number: c_long, args: [usize; 4]) -> Option<usize> {
    // SAFETY: the caller's promise; the kernel ignores arguments that it does not take.
    let make = || unsafe { system_call(number, [args[0], args[1], args[2], args[3], 0, 0]) };
    let result = optional(make)?;
    // The last page of addresses stands for codes.
    (!(-4095..0).contains(&result)).then_some(result as usize)
}

/// The kernel's number of this process: libraries that make up clocks make up this, too.
pub(crate) fn pid() -> u32 {
    // SAFETY: takes nothing. It never fails, but for a filter: then the process is the child of one
    // that knew its number, and the calling thread its first.
    unsafe { call(libc::SYS_getpid, [0; 4]) }.map_or_else(|| Linux::thread().0, |pid| pid as u32)
}

/// The user and the group that the program runs as; the largest numbers where that is not known.
pub(crate) fn user() -> (u32, u32) {
    let [user, group] = [libc::SYS_getuid, libc::SYS_getgid].map(|number| {
        // SAFETY: takes nothing.
        unsafe { call(number, [0; 4]) }.map_or(u32::MAX, |id| id as u32)
    });
    (user, group)
}

/// Reads these pieces of this process's memory, addresses and lengths, one after the other: how
/// many bytes there were before one that can't be read. `None` if a filter forbids the call.
pub(crate) fn read_own(pieces: [(usize, usize); 2], into: &mut [u8]) -> Option<usize> {
    let ours = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let theirs = pieces.map(|(at, length)| libc::iovec {
        iov_base: core::ptr::without_provenance_mut(at),
        iov_len: length,
    });
    let args = [pid() as usize, (&raw const ours) as usize, 1, theirs.as_ptr() as usize, 2, 0];
    // SAFETY: the kernel writes to memory that is ours, as much as we say at most, and reads what
    // it can.
    let read = optional(|| unsafe { system_call(libc::SYS_process_vm_readv, args) })?;
    let refused = read < 0 && read != -(libc::EFAULT as isize);
    (!refused).then(|| usize::try_from(read).unwrap_or(0))
}

/// The kernel's number (of the inode) of the file at that path, and when the file was written last,
/// in nanoseconds of the wall clock.
pub(crate) fn number(path: &CStr) -> Option<(u64, u64)> {
    let at = libc::AT_FDCWD as isize as usize;
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    let args = [at, path.as_ptr() as usize, status.as_mut_ptr() as usize, 0];
    // SAFETY: the path ends in zero, and the kernel writes the structure; both are there for the
    // call.
    unsafe { call(libc::SYS_newfstatat, args) }?;
    // SAFETY: written above, and zero is a value of all fields.
    let status = unsafe { status.assume_init() };
    let modified_ns =
        status.st_mtime.wrapping_mul(1_000_000_000).wrapping_add(status.st_mtime_nsec);
    Some((status.st_ino, modified_ns as u64))
}

/// Reads where the link of that path leads to. Returns the length of that, 0 if it does not fit or
/// is nothing.
pub(crate) fn leads_to(link: &CStr, into: &mut [u8]) -> usize {
    let at = libc::AT_FDCWD as isize as usize;
    let args = [at, link.as_ptr() as usize, into.as_mut_ptr() as usize, into.len()];
    // SAFETY: the path ends in zero, the buffer is ours and as long as we say.
    let length = unsafe { call(libc::SYS_readlinkat, args) }.unwrap_or(0);
    // The last byte is for a zero: a longer path fills that, too.
    let length = if length < into.len() { length } else { 0 };
    into[length..].fill(0);
    length
}

/// A file that is open until it is dropped.
pub(crate) struct File(usize);

impl File {
    /// Opens the file of that path. `flags` are those of `open`; it is never inherited.
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
    /// The descriptor is open, and the caller's alone.
    pub(crate) unsafe fn from_descriptor(descriptor: usize) -> Self {
        Self(descriptor)
    }

    /// The file's descriptor.
    pub(crate) fn descriptor(&self) -> c_int {
        self.0 as c_int
    }

    /// Reads on; `None` at the end, or if it can't be read.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        let args = [self.0, buffer.as_mut_ptr() as usize, buffer.len(), 0];
        // SAFETY: the buffer is ours and as long as we say.
        unsafe { call(libc::SYS_read, args) }.filter(|&length| length != 0)
    }

    /// The length of the file, in bytes; 0 if that is not known.
    pub(crate) fn length(&self) -> u64 {
        let args = [self.0, 0, libc::SEEK_END as usize, 0];
        // SAFETY: moves the position of a file that only we have.
        unsafe { call(libc::SYS_lseek, args) }.map_or(0, |length| length as u64)
    }

    /// Maps its first `length` bytes, shared, readable and writable, for good.
    pub(crate) fn map(&self, length: usize) -> Option<*mut core::ffi::c_void> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let fd = c_int::try_from(self.0).ok()?;
        let at = errno_kept(|| {
            // SAFETY: a new mapping wherever the kernel likes touches no memory that is in use.
            unsafe { libc::mmap(core::ptr::null_mut(), length, access, libc::MAP_SHARED, fd, 0) }
        });
        (at != libc::MAP_FAILED).then_some(at)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours alone. A failed close loses nothing: nothing was buffered.
        let _ = unsafe { call(libc::SYS_close, [self.0, 0, 0, 0]) };
    }
}

/// Wakes all that sleep on `word`, of all processes that share it. The memory may be gone.
pub(crate) fn wake_all(word: *const core::sync::atomic::AtomicU32) {
    let args = [word.addr(), libc::FUTEX_WAKE as usize, c_int::MAX as usize, 0, 0, 0];
    // SAFETY: the kernel takes the address as a name. Where futexes are refused, no thread sleeps.
    let _ = unsafe { system_call(libc::SYS_futex, args) };
}
