//! `signalfd(2)`: signals as a file.

use core::mem::MaybeUninit;
use core::ptr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::sys;

/// Bytes of the kernel's signal sets.
const SET: usize = 8;

/// Signals that are read from a file, and interrupt nothing.
#[derive(Debug)]
pub struct Signals(OwnedFd);

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signalled {
    /// Its number.
    pub number: i32,
    /// Which process has sent it, if one has.
    pub from: u32,
}

impl Signals {
    /// Those signals, which are blocked in the calling thread from now on, and in threads that it
    /// starts later. A thread where they are not blocked has them as before: so this is called
    /// before others are started. They stay blocked when this is dropped.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if a number is not a signal, or is one that can't be blocked; otherwise the
    /// kernel's error, such as too many open files.
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
        // SAFETY: a set of that size, there to read.
        unsafe { sys::call(libc::SYS_rt_sigprocmask, [libc::SIG_BLOCK as usize, set, 0, SET]) }
            .map_err(failed)?;
        let flags = (libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) as usize;
        // SAFETY: as above; a new file.
        let file = unsafe { sys::call(libc::SYS_signalfd4, [usize::MAX, set, SET, flags]) };
        // SAFETY: opened above, and owned by no other.
        file.map(|file| Self(unsafe { OwnedFd::from_raw_fd(file as i32) })).map_err(failed)
    }

    /// The next signal that has come to the process, or to the calling thread; `None` if there is
    /// none. Does not block. Standard signals that come several times before are one.
    #[must_use]
    pub fn next(&self) -> Option<Signalled> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let size = size_of_val(&info);
        let (file, to) = (self.0.as_raw_fd() as usize, info.as_mut_ptr() as usize);
        // SAFETY: `size` bytes are ours to write.
        let read = unsafe { sys::call(libc::SYS_read, [file, to, size]) };
        if read != Ok(size) {
            return None;
        }
        // SAFETY: written by the kernel; all zero bits is one, too.
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
        // SAFETY: to the calling thread, where it is blocked.
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
