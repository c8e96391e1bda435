//! `timerfd_create(2)`: a file that becomes readable at a given time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::{clock, sys};

/// A file that becomes readable at a time of the monotonic clock, once it was set. The time is in
/// nanoseconds; its accuracy is that of the kernel's timers.
#[derive(Debug)]
pub struct TimerFd(OwnedFd);

impl TimerFd {
    /// Creates a file whose timer is not set; it is closed on `exec`.
    ///
    /// # Errors
    ///
    /// The kernel's error: too many files are open.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: takes only two numbers.
        let file = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        if file == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: opened above, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(file) }))
    }

    /// Makes the file readable from that time on, at once if it has passed; with `None`, never. A
    /// system call.
    pub fn set(&self, at_ns: Option<u64>) {
        // A time of zero would disarm the timer.
        let it_value = clock::timespec(at_ns.map_or(0, |at| at.max(1)));
        let time = libc::itimerspec { it_interval: clock::timespec(0), it_value };
        let (file, time) = (self.0.as_raw_fd() as usize, core::ptr::from_ref(&time) as usize);
        // SAFETY: the time is readable, and the old one is not requested. The call fails only for
        // invalid times.
        let _ = unsafe {
            let absolute = libc::TFD_TIMER_ABSTIME as usize;
            sys::call(libc::SYS_timerfd_settime, [file, absolute, time, 0])
        };
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use antiphon_platform::{Clock, Deadline};

    use super::*;
    use crate::files::{Way, wait};

    #[test]
    fn is_readable_from_that_time_on() {
        let timer = TimerFd::new().expect("a file");
        let look = |deadline| wait(timer.as_fd(), Way::Read, deadline).expect("a wait");
        let past = Some(Deadline { clock: Clock::Monotonic, ns: 0 });
        assert!(!look(past));
        timer.set(Some(0));
        assert!(look(past));
        let later_ns = clock::now(Clock::Monotonic) + 3_600_000_000_000;
        timer.set(Some(later_ns));
        assert!(!look(past));
        let soon_ns = clock::now(Clock::Monotonic) + 1_000_000;
        timer.set(Some(soon_ns));
        assert!(look(None) && clock::now(Clock::Monotonic) >= soon_ns);
        timer.set(None);
        assert!(!look(past));
    }
}
