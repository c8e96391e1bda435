//! Files in memory that have no name in any file system: nothing is left of them, whatever becomes
//! of this process.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd as _;

/// An empty file in memory, which mappings of it show as `name`. It is closed on `exec`; `flags`
/// are further ones of `memfd_create`.
///
/// # Errors
///
/// Those of the kernel: too many open files, or no memory.
pub fn file(name: &CStr, flags: libc::c_uint) -> io::Result<File> {
    // SAFETY: a string that ends in zero.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that no other code knows.
    Ok(unsafe { File::from_raw_fd(fd) })
}
