//! The descriptors that a loop waits on: an epoll with a timerfd in it, as programs use that need
//! better resolution than milliseconds.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::compete::work::timespec;

/// An epoll with a timerfd.
pub struct Events {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// Time at which the timerfd becomes readable.
    armed_ns: u64,
}

impl Events {
    /// # Errors
    ///
    /// If no descriptors are left.
    pub fn new() -> Result<Self> {
        let owned = |fd: i32| match fd {
            -1 => Err(Error::last_os_error()),
            // SAFETY: the descriptor was opened just now, and no other code has it.
            fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        };
        // SAFETY: `epoll_create1` takes flags only.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: `timerfd_create` takes a clock and flags only.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (set, fd) = (epoll.as_raw_fd(), timer.as_raw_fd());
        // SAFETY: both descriptors are open, and the event is a local variable.
        if unsafe { libc::epoll_ctl(set, libc::EPOLL_CTL_ADD, fd, &raw mut event) } != 0 {
            return Err(Error::last_os_error());
        }
        Ok(Self { epoll, timer, armed_ns: 0 })
    }

    /// Waits until this time, in nanoseconds of the monotonic clock; if it has passed, only polls.
    /// `None` waits without a limit. May return early.
    pub fn wait(&mut self, until_ns: Option<u64>) {
        let looks = until_ns == Some(0);
        if let Some(at_ns) = until_ns.filter(|&at_ns| !looks && at_ns != self.armed_ns) {
            self.arm(at_ns);
        }
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let timeout = if looks { 0 } else { -1 };
        // SAFETY: there is room for one event, in a local variable.
        let ready = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &raw mut event, 1, timeout) };
        if ready == 1 {
            let mut times = 0_u64;
            let (to, size) = ((&raw mut times).cast(), size_of_val(&times));
            // SAFETY: `to` points to a local number of `size` bytes.
            unsafe { libc::read(self.timer.as_raw_fd(), to, size) };
        }
    }

    fn arm(&mut self, at_ns: u64) {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let at = libc::itimerspec { it_interval: never, it_value: timespec(at_ns.max(1)) };
        let (fd, none) = (self.timer.as_raw_fd(), std::ptr::null_mut());
        // SAFETY: the timerfd is open, `at` is a local variable, and the old setting is not asked
        // for.
        unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &raw const at, none) };
        self.armed_ns = at_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compete::work::now_ns;

    #[test]
    fn it_waits_until_the_time_has_come_and_not_where_it_has() {
        let mut events = Events::new().expect("descriptors");
        for ahead_ns in [3_000_000, 1_000_000] {
            let at_ns = now_ns() + ahead_ns;
            events.wait(Some(0));
            while now_ns() < at_ns {
                events.wait(Some(at_ns));
            }
        }
        events.wait(Some(1));
    }
}
