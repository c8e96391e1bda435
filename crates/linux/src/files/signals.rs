//! `signalfd(2)`: signals as a file.

use core::mem::MaybeUninit;
use core::ptr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys;

/// Size of the kernel's signal sets, in bytes.
const SET: usize = 8;

/// A set of signals that are read from a file, and interrupt no thread.
#[derive(Debug)]
pub struct Signals(OwnedFd);

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signalled {
    /// The number of the signal.
    pub number: i32,
    /// The id of the process that sent it; 0 if the kernel did.
    pub from: u32,
}

impl Signals {
    /// Blocks these signals in the calling thread, and so in threads that it starts later, and
    /// opens a file to read them. A thread in which they are not blocked still receives them, so
    /// call this before other threads are started. They stay blocked when the result is dropped.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if a number is not a signal, or is a signal that can't be blocked; otherwise
    /// the kernel's error, such as too many open files.
    pub fn new(numbers: &[i32]) -> io::Result<Self> {
        let mut set = 0_u64;
        for &number in numbers {
            if !(1..=64).contains(&number) || [libc::SIGKILL, libc::SIGSTOP].contains(&number) {
                let what = "not a signal that a program may take";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            set |= 1 << (number - 1);
        }
        let failed = |sys::Errno(code)| io::Error::from_raw_os_error(code);
        let set = ptr::from_ref(&set) as usize;
        // SAFETY: a readable set of that size.
        unsafe { sys::call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, set, 0, SET]) }
            .map_err(failed)?;
        let flags = (libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) as usize;
        // SAFETY: a readable set of that size; the call opens a new file.
        let file = unsafe { sys::call(libc::SYS_signalfd4, [usize::MAX, set, SET, flags]) };
        // SAFETY: opened above, and nothing else owns it.
        file.map(|file| Self(unsafe { OwnedFd::from_raw_fd(file as i32) })).map_err(failed)
    }

    /// The next pending signal of the process or the calling thread; `None` if there is none. Does
    /// not block. Several instances of a pending standard signal count as one.
    #[must_use]
    pub fn next(&self) -> Option<Signalled> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of_val(&info);
        let (file, to) = (self.0.as_raw_fd() as usize, info.as_mut_ptr() as usize);
        // SAFETY: `size` bytes of a local are writable.
        let read = unsafe { sys::call(libc::SYS_read, [file, to, size]) };
        if read != Ok(size) {
            return None;
        }
        // SAFETY: written by the kernel; all zero bits are valid, too.
        let info = unsafe { info.assume_init() };
        Some(Signalled { number: info.ssi_signo as i32, from: info.ssi_pid })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_and_interrupt_nothing() {
        let signals = Signals::new(&[libc::SIGUSR2]).expect("a file");
        assert_eq!(signals.next(), None);
        // SAFETY: sent to the calling thread, where the signal is blocked.
        assert_eq!(unsafe { libc::raise(libc::SIGUSR2) }, 0);
        let from = std::process::id();
        assert_eq!(signals.next(), Some(Signalled { number: libc::SIGUSR2, from }));
        assert_eq!(signals.next(), None);
    }

    #[test]
    fn what_is_no_signal_is_refused() {
        for number in [0, -1, 65, libc::SIGKILL] {
            let refused = Signals::new(&[number]).expect_err("no such signal");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
