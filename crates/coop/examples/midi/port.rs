//! A pseudo-terminal as a serial port: bytes that are written to one end are read from the other,
//! unchanged.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The driver's end, and the path of the other one.
pub struct Port {
    pub driver: File,
    pub path: PathBuf,
}

impl Port {
    pub fn open() -> io::Result<Self> {
        // SAFETY: takes a number.
        let end = unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC) };
        checked(end)?;
        // SAFETY: opened above, and it has no other owner.
        let driver = File::from(unsafe { OwnedFd::from_raw_fd(end) });
        // SAFETY: an end of a pseudo-terminal.
        unsafe {
            checked(libc::grantpt(end))?;
            checked(libc::unlockpt(end))?;
        }
        let mut name = [0_u8; 64];
        // SAFETY: `name.len()` bytes, ours to write.
        let failed = unsafe { libc::ptsname_r(end, name.as_mut_ptr().cast(), name.len()) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let path = PathBuf::from(String::from_utf8_lossy(name).into_owned());
        Ok(Self { driver, path })
    }
}

/// Opens the other end, for bytes as they are: no echo, no lines, no signals.
pub fn open_raw(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    let mut how = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the structure is ours to write, and is read once it was written.
    unsafe {
        checked(libc::tcgetattr(file.as_raw_fd(), how.as_mut_ptr()))?;
        libc::cfmakeraw(how.as_mut_ptr());
        checked(libc::tcsetattr(file.as_raw_fd(), libc::TCSANOW, how.as_ptr()))?;
    }
    Ok(file)
}

fn checked(result: i32) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
