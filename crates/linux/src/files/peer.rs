//! The process at the other end of a Unix socket, as the kernel reports it.

use core::mem::MaybeUninit;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// The process that connected or, for a socket that has connected, the listening process, as of
/// that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id in the caller's PID namespace; 0 if the process is not in it.
    pub pid: u32,
    /// The effective user of the process.
    pub user: u32,
}

/// Returns the process at the other end of a Unix socket (`SO_PEERCRED`).
///
/// # Errors
///
/// The kernel's error if `socket` is not a Unix socket.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut known = MaybeUninit::<libc::ucred>::zeroed();
    let mut bytes = size_of::<libc::ucred>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let to = known.as_mut_ptr().cast();
    // SAFETY: a local of the given size, and its length.
    let code = unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, to, &raw mut bytes) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: written, and zero is valid.
    let known = unsafe { known.assume_init() };
    Ok(Peer { pid: known.pid.try_into().unwrap_or(0), user: known.uid })
}

/// The effective user of this process.
#[must_use]
pub fn user() -> u32 {
    // SAFETY: takes no arguments, and never fails.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn who_has_both_ends_is_its_peer() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let us = Peer { pid: std::process::id(), user: user() };
        assert_eq!(peer(one.as_fd()).expect("a peer"), us);
        let file = std::fs::File::open("/dev/null").expect("a file");
        assert!(peer(file.as_fd()).is_err());
    }
}
