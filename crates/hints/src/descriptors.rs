//! Two descriptors, sent and received over a socket.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;

/// Sends the two descriptors that a scheduler answers a connection with: of the page, and of the
/// program that registers. Does not wait.
///
/// # Errors
///
/// As the system call.
pub fn send(stream: &UnixStream, both: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let both = both.map(|one| one.as_raw_fd());
    let mut byte = 0_u8;
    let mut part = libc::iovec { iov_base: ptr::from_mut(&mut byte).cast(), iov_len: 1 };
    // Of 64-bit words, so that it is aligned as a header is.
    let mut control = [0_u64; 4];
    // SAFETY: all zero is an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: both compute lengths.
    let (space, length) = unsafe {
        (libc::CMSG_SPACE(size_of_val(&both) as u32), libc::CMSG_LEN(size_of_val(&both) as u32))
    };
    message.msg_controllen = space as _;
    // SAFETY: the control buffer has room for a header.
    let header = unsafe { &mut *libc::CMSG_FIRSTHDR(&message) };
    header.cmsg_level = libc::SOL_SOCKET;
    header.cmsg_type = libc::SCM_RIGHTS;
    header.cmsg_len = length as _;
    // SAFETY: and for two descriptors behind it: 24 of its 32 bytes are used.
    unsafe { libc::CMSG_DATA(header).cast::<[i32; 2]>().write_unaligned(both) };
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the message names one byte and the control buffer, which are alive.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &message, flags) };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives two descriptors. Allocates nothing.
pub(crate) fn receive(stream: &UnixStream) -> io::Result<[OwnedFd; 2]> {
    const TWO: usize = 2 * size_of::<i32>();
    let mut byte = 0_u8;
    // Of 64-bit words, so that it is aligned as a header is.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec { iov_base: ptr::from_mut(&mut byte).cast(), iov_len: 1 };
    // SAFETY: all zero is an empty message.
    let mut message: libc::msghdr = unsafe { zeroed() };
    (message.msg_iov, message.msg_iovlen) = (&mut part, 1);
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message names one byte and a control buffer, both alive and as large as stated.
    let bytes = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
    if bytes < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has filled the control buffer, and set its length.
    let header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    // SAFETY: `CMSG_FIRSTHDR` returns null, or a header within the buffer.
    let header = unsafe { header.as_ref() };
    // SAFETY: computes a length.
    let expected = unsafe { libc::CMSG_LEN(TWO as u32) } as usize;
    match header {
        Some(header) if header.cmsg_type == libc::SCM_RIGHTS && header.cmsg_len == expected => {
            // SAFETY: the header is within the buffer, and two descriptors follow it, as its
            // length says.
            let both = unsafe { libc::CMSG_DATA(header).cast::<[i32; 2]>().read_unaligned() };
            // SAFETY: the kernel has opened both for this process; nothing else knows them.
            Ok(both.map(|one| unsafe { OwnedFd::from_raw_fd(one) }))
        }
        // There was room for one descriptor only.
        Some(header)
            if header.cmsg_type == libc::SCM_RIGHTS
                // SAFETY: computes a length.
                && header.cmsg_len == unsafe { libc::CMSG_LEN(size_of::<i32>() as u32) } as usize =>
        {
            // SAFETY: the header is within the buffer, and one descriptor follows it.
            let one = unsafe { libc::CMSG_DATA(header).cast::<i32>().read_unaligned() };
            // SAFETY: the kernel has opened it for this process; nothing else knows it.
            drop(unsafe { OwnedFd::from_raw_fd(one) });
            Err(io::Error::from_raw_os_error(libc::EMFILE))
        }
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}
