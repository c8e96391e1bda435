//! Waiting for files: sockets, pipes, and all others that `poll(2)` takes.
//!
//! | item | purpose |
//! |---|---|
//! | [`wait`] | a wait for one file; [`wait_beside`], or for a second |
//! | [`Epoll`] | a wait for many files, and for threads that ring its [bell](Epoll::bell) |
//! | `Ring` | receiving and sending by the kernel for many files; feature `io_uring` |
//! | [`TimerFd`] | a wait for a time, together with files |
//! | [`Signals`] | a wait for signals, together with files |
//! | [`connect`] | a connection without blocking |
//! | [`peer`] | the process at the other end of a Unix socket |
//! | [`own_directory`], [`open_own`], [`Mapping`] | memory that the processes of a user share |
//! | [`nameless`], [`reopen_nameless`] | memory that a process shares with its children |
//!
//! Each wait is one system call.

mod common;
mod connect;
mod epoll;
mod peer;
#[cfg(feature = "io_uring")]
mod ring;
mod signals;
mod timer;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use antiphon_platform::Deadline;

use crate::notify::left;
use crate::sys;

pub use common::{Mapping, nameless, nameless_path, open_own, own_directory, reopen_nameless};
pub use connect::connect;
pub use epoll::{Epoll, Event, Events, Trigger, ways_of};
pub use peer::{Peer, peer, user};
#[cfg(feature = "io_uring")]
pub use ring::{Done, Ring};
pub use signals::{Signalled, Signals};
pub use timer::TimerFd;

/// The direction in which a file must be ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// There is data to read, or a connection to accept, or end of file, or an error.
    Read,
    /// There is room to write; or an error.
    Write,
}

/// Blocks until the file is ready or the deadline has passed; returns whether the file is ready. A
/// deadline in the past means a poll. May return `false` early, for example when a signal comes.
///
/// # Errors
///
/// The kernel's error.
pub fn wait(file: BorrowedFd<'_>, way: Way, deadline: Option<Deadline>) -> io::Result<bool> {
    wait_for(&mut [asks(file, way)], deadline)
}

/// Like [`wait`], but ends when `other` becomes readable: returns `false` if `file` is not ready
/// then.
///
/// # Errors
///
/// The kernel's error.
pub fn wait_beside(
    file: BorrowedFd<'_>,
    way: Way,
    other: BorrowedFd<'_>,
    deadline: Option<Deadline>,
) -> io::Result<bool> {
    wait_for(&mut [asks(file, way), asks(other, Way::Read)], deadline)
}

fn asks(file: BorrowedFd<'_>, way: Way) -> libc::pollfd {
    let events = match way {
        Way::Read => libc::POLLIN | libc::POLLRDHUP,
        Way::Write => libc::POLLOUT,
    };
    libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 }
}

/// Waits for the files; returns whether the first one is ready.
fn wait_for(files: &mut [libc::pollfd], deadline: Option<Deadline>) -> io::Result<bool> {
    let mut left = left(deadline);
    let left = left.as_mut().map_or(0, |left| core::ptr::from_mut(left) as usize);
    let polls = files.as_mut_ptr() as usize;
    // SAFETY: `files.len()` `pollfd` and a time, all writable; there is no mask.
    match unsafe { sys::call(libc::SYS_ppoll, [polls, files.len(), left, 0, 0]) } {
        Ok(_) => Ok(files[0].revents != 0),
        Err(sys::Errno(libc::EINTR)) => Ok(false),
        Err(sys::Errno(code)) => Err(io::Error::from_raw_os_error(code)),
    }
}

/// Sets or clears `O_NONBLOCK`: whether calls fail that would block.
///
/// # Errors
///
/// The kernel's error.
pub fn set_nonblocking(file: BorrowedFd<'_>, nonblocking: bool) -> io::Result<()> {
    let file = file.as_raw_fd();
    // SAFETY: the file is open, and there are no pointers.
    let flags = unsafe { libc::fcntl(file, libc::F_GETFL) };
    if flags == -1 {
        return Err(io::Error::last_os_error());
    }
    let set = if nonblocking { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
    // SAFETY: the file is open, and there are no pointers.
    if set != flags && unsafe { libc::fcntl(file, libc::F_SETFL, set) } == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets the number of connections that may wait to be accepted, as far as the system allows
/// (`net.core.somaxconn`). Also works on a socket that already listens.
///
/// # Errors
///
/// The kernel's error.
pub fn set_backlog(listener: BorrowedFd<'_>, most: i32) -> io::Result<()> {
    // SAFETY: the file is open, and there are no pointers.
    match unsafe { libc::listen(listener.as_raw_fd(), most) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use antiphon_platform::Clock;

    use super::*;

    const PAST: Option<Deadline> = Some(Deadline { clock: Clock::Monotonic, ns: 0 });

    #[test]
    fn a_look_says_what_is_ready() {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        assert!(!wait(other.as_fd(), Way::Read, PAST).expect("a look"));
        assert!(wait(other.as_fd(), Way::Write, PAST).expect("a look"));
        one.write_all(b"x").expect("room");
        assert!(wait(other.as_fd(), Way::Read, None).expect("a wait"));
        drop(one);
        assert!(wait(other.as_fd(), Way::Read, None).expect("a wait"));
    }

    #[test]
    fn another_file_ends_a_wait_and_is_not_what_is_ready() {
        let (mut one, other) = UnixStream::pair().expect("a pair");
        let (mut bell, rung) = UnixStream::pair().expect("a pair");
        let waits = |way, deadline| wait_beside(other.as_fd(), way, rung.as_fd(), deadline);
        assert!(!waits(Way::Read, PAST).expect("a look"));
        bell.write_all(b"x").expect("room");
        assert!(!waits(Way::Read, None).expect("a wait"));
        assert!(waits(Way::Write, None).expect("a wait"));
        one.write_all(b"x").expect("room");
        assert!(waits(Way::Read, None).expect("a wait"));
    }

    #[test]
    fn a_file_that_would_block_says_so_or_blocks() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let blocks = || {
            // SAFETY: an open file, no pointers.
            unsafe { libc::fcntl(one.as_raw_fd(), libc::F_GETFL) & libc::O_NONBLOCK == 0 }
        };
        for nonblocking in [true, true, false, false] {
            set_nonblocking(one.as_fd(), nonblocking).expect("an open file");
            assert_eq!(blocks(), !nonblocking);
        }
    }
}
