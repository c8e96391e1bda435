//! Files in memory without a name in any file system: nothing of them remains when this process
//! ends, however it ends.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;

/// Creates an empty file in memory, whose mappings show as `name`. It is closed on `exec`; `flags`
/// are further flags of `memfd_create`.
///
/// # Errors
///
/// Those of `memfd_create`: too many open files, or no memory.
pub fn file(name: &CStr, flags: libc::c_uint) -> io::Result<File> {
    // SAFETY: `name` ends in zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that no other code owns.
    Ok(unsafe { File::from_raw_fd(fd) })
}
