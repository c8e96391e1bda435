//! `eventfd(2)`: a notification makes a file readable.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use antiphon_platform::{Deadline, Notify, Parked, Ticket};

use super::{left, timed_out};
use crate::{futex, identity, sys};

/// A file that becomes readable when its owner is notified. An event loop can wait for it together
/// with other files, between [`Notify::begin`] and [`Notify::end`]; [`Notify::sleep`] waits for
/// this file alone.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates a file, which is closed on `exec`.
    ///
    /// # Errors
    ///
    /// The kernel's error: too many files are open.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes only two numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: opened above, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn raw(&self) -> usize {
        self.0.as_raw_fd() as usize
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Notify for EventFd {
    /// The ticket names the process: its children have the same file.
    fn begin(&self) -> Ticket {
        Ticket::MIN.saturating_add(identity::epoch().into())
    }

    unsafe fn sleep(&self, _: Ticket, deadline: Option<Deadline>) -> Parked {
        let mut file = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut left = left(deadline);
        let left = left.as_mut().map_or(0, |left| core::ptr::from_mut(left) as usize);
        // SAFETY: one `pollfd` and a time, both writable locals; there is no mask.
        let ready = unsafe {
            sys::call(libc::SYS_ppoll, [core::ptr::from_mut(&mut file) as usize, 1, left, 0, 0])
        };
        match ready {
            Ok(0) => timed_out(deadline),
            Ok(_) | Err(sys::Errno(libc::EINTR)) => Parked::Woken,
            // A filter refuses the call: the caller's loop then yields to other threads.
            Err(_) => {
                futex::yield_now();
                timed_out(deadline)
            }
        }
    }

    unsafe fn end(&self, ticket: Ticket) {
        if ticket != self.begin() {
            return;
        }
        let mut count = 0_u64;
        // SAFETY: `count` is a writable local of that size. If nothing was written yet, the read
        // fails, which is fine.
        let _ = unsafe {
            sys::call(libc::SYS_read, [self.raw(), core::ptr::from_mut(&mut count) as usize, 8])
        };
    }

    fn notify(&self, _: Ticket) {
        let one = 1_u64;
        // SAFETY: `one` is readable. The write fails only after 2^64 writes, when the file is
        // readable anyway.
        let _ = unsafe {
            sys::call(libc::SYS_write, [self.raw(), core::ptr::from_ref(&one) as usize, 8])
        };
    }
}
