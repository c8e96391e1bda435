//! `antiphon_net_listen`, `_accept`, `_connect`: sockets by the addresses of C.

use core::ffi::c_int;
use core::time::Duration;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use antiphon_linux::files::Way;
use libc::{EINPROGRESS, SO_ERROR, SO_REUSEADDR, SOL_SOCKET, sockaddr, socklen_t, timespec};

use crate::code::{left, timed};
use crate::export::exports;
use crate::file::{File, again, code};

/// Number of connections that may wait to be accepted, if the system allows this many.
const BACKLOG: c_int = 4096;
const FLAGS: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// Returns the result of a call that reports errors by -1 and `errno`.
fn check(returned: c_int) -> io::Result<c_int> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Creates a stream socket for the family of the address.
///
/// # Safety
///
/// `address` points to an address.
unsafe fn stream(address: *const sockaddr) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let family = unsafe { (*address).sa_family };
    // SAFETY: the arguments are numbers.
    let socket = check(unsafe { libc::socket(family.into(), libc::SOCK_STREAM | FLAGS, 0) })?;
    // SAFETY: the socket was created above and is ours.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// # Safety
///
/// `address` points to an address of `bytes` bytes.
unsafe fn listen(address: *const sockaddr, bytes: socklen_t) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let socket = unsafe { stream(address) }?;
    let (file, on) = (socket.as_raw_fd(), 1 as c_int);
    // SAFETY: our file number, and the caller's address.
    unsafe {
        let (at, size) = ((&raw const on).cast(), size_of::<c_int>() as socklen_t);
        check(libc::setsockopt(file, SOL_SOCKET, SO_REUSEADDR, at, size))?;
        check(libc::bind(file, address, bytes))?;
        check(libc::listen(file, BACKLOG))?;
    }
    Ok(socket)
}

/// # Safety
///
/// The conditions of `listen`.
unsafe fn connect(
    made: &mut *mut File,
    address: *const sockaddr,
    bytes: socklen_t,
    timeout: Option<Duration>,
) -> io::Result<()> {
    // SAFETY: the caller's promise.
    let socket = unsafe { stream(address) }?;
    // SAFETY: our file number, and the caller's address.
    let begun = check(unsafe { libc::connect(socket.as_raw_fd(), address, bytes) });
    let stream = File::new(socket, true);
    match begun {
        Err(error) if error.raw_os_error() == Some(EINPROGRESS) => {
            stream.file.ready(Way::Write, timeout)?;
            failed(&stream)?;
        }
        begun => _ = begun?,
    }
    *made = stream.hand_over();
    Ok(())
}

/// Returns the pending error of a socket.
fn failed(file: &File) -> io::Result<()> {
    let (mut error, mut size): (c_int, _) = (0, size_of::<c_int>() as socklen_t);
    let at = (&raw mut error).cast();
    // SAFETY: memory for a number.
    check(unsafe { libc::getsockopt(file.number(), SOL_SOCKET, SO_ERROR, at, &raw mut size) })?;
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// # Safety
///
/// There is memory for an address of `*bytes` bytes, or both pointers are null.
unsafe fn accept(
    listener: &File,
    made: &mut *mut File,
    address: *mut sockaddr,
    bytes: *mut socklen_t,
    timeout: Option<Duration>,
) -> c_int {
    let accept = |file: &OwnedFd| {
        // SAFETY: the caller's. If it fails, the number of bytes is unchanged.
        again(|| unsafe { libc::accept4(file.as_raw_fd(), address, bytes, FLAGS) as isize })
    };
    match listener.file.until(Way::Read, timeout, accept, |_| false) {
        Ok(socket) => {
            // SAFETY: the call above returned this file, which is ours.
            let stream = File::new(unsafe { OwnedFd::from_raw_fd(socket as c_int) }, true);
            *made = stream.hand_over();
            0
        }
        Err(error) => code(&error),
    }
}

fn done(done: io::Result<()>) -> c_int {
    done.map_or_else(|error| code(&error), |()| 0)
}

exports! {
    /// Listens on an address.
    fn antiphon_net_listen(
        listener: &mut *mut File,
        address: *const sockaddr,
        bytes: socklen_t,
    ) -> c_int {
        // SAFETY: the caller passes an address.
        let made = unsafe { listen(address, bytes) };
        done(made.map(|socket| *listener = File::new(socket, true).hand_over()))
    }

    /// Waits for a connection.
    fn antiphon_net_accept(
        listener: &File,
        stream: &mut *mut File,
        address: *mut sockaddr,
        bytes: *mut socklen_t,
    ) -> c_int {
        // SAFETY: the caller passes memory of that size.
        unsafe { accept(listener, stream, address, bytes, None) }
    }

    /// Waits for a connection, or gives up at the deadline.
    fn antiphon_net_timedaccept(
        listener: &File,
        stream: &mut *mut File,
        address: *mut sockaddr,
        bytes: *mut socklen_t,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes memory of that size.
            unsafe { accept(listener, stream, address, bytes, Some(left(deadline))) }
        })
    }

    /// Connects to an address; waits for the connection.
    fn antiphon_net_connect(
        stream: &mut *mut File,
        address: *const sockaddr,
        bytes: socklen_t,
    ) -> c_int {
        // SAFETY: the caller passes an address.
        done(unsafe { connect(stream, address, bytes, None) })
    }

    /// Connects to an address; waits for the connection until the deadline.
    fn antiphon_net_timedconnect(
        stream: &mut *mut File,
        address: *const sockaddr,
        bytes: socklen_t,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes an address.
            done(unsafe { connect(stream, address, bytes, Some(left(deadline))) })
        })
    }
}
