//! `antiphon_file_t`: a file that a fiber waits for.

use core::ffi::{c_int, c_void};
use core::time::Duration;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use antiphon::net::Async;
use antiphon_linux::files::{Way, set_nonblocking};
use libc::{EBADF, EINVAL, EIO, ETIMEDOUT, timespec};

use crate::code::{left, timed};
use crate::export::exports;

/// `antiphon_file_t`.
pub struct File {
    pub(crate) file: Async<OwnedFd>,
    /// Whether it is a socket: then a write without a reader must send no signal.
    is_socket: bool,
}

impl File {
    /// Wraps a file that is already non-blocking.
    pub(crate) fn new(file: OwnedFd, is_socket: bool) -> Self {
        Self { file: Async::of_nonblocking(file), is_socket }
    }

    /// Hands the file over to the caller.
    pub(crate) fn hand_over(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }

    pub(crate) fn number(&self) -> RawFd {
        self.file.get_ref().as_raw_fd()
    }

    /// # Safety
    ///
    /// `count` bytes may be written to `bytes`.
    unsafe fn read(
        &self,
        bytes: *mut c_void,
        count: usize,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        // SAFETY: the caller's promise.
        let read = |file: &OwnedFd| again(|| unsafe { libc::read(file.as_raw_fd(), bytes, count) });
        // A read of fewer bytes has read everything available; a read of 0 is the end.
        self.file.until(Way::Read, timeout, read, |&read| 0 < read && read < count)
    }

    /// # Safety
    ///
    /// `count` bytes may be read from `bytes`.
    unsafe fn write(
        &self,
        bytes: *const c_void,
        count: usize,
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let write = |file: &OwnedFd| {
            let file = file.as_raw_fd();
            // SAFETY: the caller's promise.
            again(|| unsafe {
                if self.is_socket {
                    libc::send(file, bytes, count, libc::MSG_NOSIGNAL)
                } else {
                    libc::write(file, bytes, count)
                }
            })
        };
        self.file.until(Way::Write, timeout, write, |&written| 0 < written && written < count)
    }
}

/// Repeats a call until it is not interrupted by a signal.
pub(crate) fn again(call: impl Fn() -> isize) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}

/// Returns the code of an error; a timeout is `ETIMEDOUT`.
pub(crate) fn code(error: &io::Error) -> c_int {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ETIMEDOUT,
        _ => error.raw_os_error().unwrap_or(EIO),
    }
}

/// Returns the code of a transfer; writes the number of bytes to `count`.
fn done(result: io::Result<usize>, count: &mut usize) -> c_int {
    match result {
        Ok(done) => {
            *count = done;
            0
        }
        Err(error) => code(&error),
    }
}

/// Writes all bytes, and returns the code; `written` is their number even after an error.
///
/// # Safety
///
/// `count` bytes may be read from `bytes`.
unsafe fn write_all(
    file: &File,
    bytes: *const c_void,
    count: usize,
    written: &mut usize,
    timeout: impl Fn() -> Option<Duration>,
) -> c_int {
    *written = 0;
    while *written < count {
        // SAFETY: the caller's promise, and at most the remaining bytes.
        match unsafe { file.write(bytes.byte_add(*written), count - *written, timeout()) } {
            Ok(more) => *written += more,
            Err(error) => return code(&error),
        }
    }
    0
}

fn way(number: c_int) -> Option<Way> {
    match number {
        0 => Some(Way::Read),
        1 => Some(Way::Write),
        _ => None,
    }
}

fn ready(file: &File, number: c_int, timeout: Option<Duration>) -> c_int {
    let Some(way) = way(number) else { return EINVAL };
    file.file.ready(way, timeout).map_or_else(|error| code(&error), |()| 0)
}

exports! {
    /// Makes a file non-blocking, and takes it over.
    fn antiphon_file_create(file: &mut *mut File, number: c_int) -> c_int {
        let mut kind: c_int = 0;
        let mut bytes = size_of::<c_int>() as libc::socklen_t;
        let at = core::ptr::from_mut(&mut kind).cast();
        // SAFETY: a file number, and memory for one value.
        let is_socket = unsafe {
            libc::getsockopt(number, libc::SOL_SOCKET, libc::SO_TYPE, at, &raw mut bytes) == 0
        };
        if number < 0 {
            return EBADF;
        }
        // SAFETY: the caller's file for this call; if the number is not open, the call fails.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        if let Err(error) = set_nonblocking(borrowed, true) {
            return code(&error);
        }
        // SAFETY: the file is open, and the caller hands it over.
        *file = File::new(unsafe { OwnedFd::from_raw_fd(number) }, is_socket).hand_over();
        0
    }

    /// Closes the file.
    fn antiphon_file_destroy(file: *mut File) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(file) });
    }

    /// Gives the file back in blocking mode.
    fn antiphon_file_release(file: *mut File, number: &mut c_int) -> c_int {
        // SAFETY: created by this library, and not used after this call.
        match unsafe { Box::from_raw(file) }.file.into_inner() {
            Ok(file) => {
                *number = file.into_raw_fd();
                0
            }
            Err(error) => code(&error),
        }
    }

    /// Returns the file's number.
    fn antiphon_file_number(file: &File) -> c_int {
        file.number()
    }

    /// Reads; waits for at least one byte.
    fn antiphon_file_read(
        file: &File,
        bytes: *mut c_void,
        count: usize,
        read: &mut usize,
    ) -> c_int {
        // SAFETY: the caller passes memory of that size.
        done(unsafe { file.read(bytes, count, None) }, read)
    }

    /// Reads; waits for something, or gives up at the deadline.
    fn antiphon_file_timedread(
        file: &File,
        bytes: *mut c_void,
        count: usize,
        read: &mut usize,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes memory of that size.
            done(unsafe { file.read(bytes, count, Some(left(deadline))) }, read)
        })
    }

    /// Writes all bytes; waits for room.
    fn antiphon_file_write(file: &File, bytes: *const c_void, count: usize) -> c_int {
        // SAFETY: the caller passes memory of that size.
        unsafe { write_all(file, bytes, count, &mut 0, || None) }
    }

    /// Writes all; waits for room, or gives up at the deadline.
    fn antiphon_file_timedwrite(
        file: &File,
        bytes: *const c_void,
        count: usize,
        written: &mut usize,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes memory of that size.
            unsafe { write_all(file, bytes, count, written, || Some(left(deadline))) }
        })
    }

    /// Waits until the file is ready.
    fn antiphon_file_wait(file: &File, way: c_int) -> c_int {
        ready(file, way, None)
    }

    /// Waits until there may be something to do, or gives up at the deadline.
    fn antiphon_file_timedwait(
        file: &File,
        way: c_int,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| ready(file, way, Some(left(deadline))))
    }
}
