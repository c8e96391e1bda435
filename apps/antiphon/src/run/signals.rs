//! The signals that this process gets while CMD runs: taken one by one, in order, and passed on.
//!
//! All signals are blocked. A blocked signal is delivered to no handler and has no default action:
//! it stays pending until it is taken ([`Signals::next`]). That holds for ignored signals, too, so
//! a program under `nohup` that handles SIGHUP gets it.
//!
//! The system calls are made without the C library, like those of [`antiphon_report::process`].

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// The size of the kernel's set of signals: bit N - 1 stands for signal N.
const BYTES: usize = size_of::<u64>();

/// A signal that arrived.
#[derive(Clone, Copy)]
pub struct Signal {
    info: libc::siginfo_t,
}

/// Takes a pending signal; if there is none, waits for one if `wait` is set.
fn take(wait: bool) -> io::Result<Option<Signal>> {
    let all = u64::MAX;
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let until = if wait { std::ptr::null() } else { &raw const now };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let place = info.as_mut_ptr();
    // SAFETY: the set has the length that is passed, and the kernel writes to our memory.
    let signal =
        unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &raw const all, place, until, BYTES) };
    if signal > 0 {
        // SAFETY: written by the call, and zero is valid for all fields.
        return Ok(Some(Signal { info: unsafe { info.assume_init() } }));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::WouldBlock => Ok(None),
        _ => Err(error),
    }
}

/// The arriving signals, and a file that is served while waiting for them.
pub struct Signals<'a> {
    /// A descriptor that is readable when a signal is pending, the file that is readable when it
    /// needs service, and the function that serves it.
    served: Option<(OwnedFd, BorrowedFd<'a>, &'a dyn Fn())>,
}

impl<'a> Signals<'a> {
    /// All signals, with nothing to serve meanwhile.
    pub fn alone() -> Self {
        Self { served: None }
    }

    /// All signals; when `file` is readable meanwhile, `serve` is called.
    ///
    /// # Errors
    ///
    /// Those of `signalfd`.
    pub fn serving(file: BorrowedFd<'a>, serve: &'a dyn Fn()) -> io::Result<Self> {
        let all = u64::MAX;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set has the length that is passed.
        let signals =
            unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const all, BYTES, flags) };
        let signals = i32::try_from(signals).ok().filter(|&descriptor| descriptor >= 0);
        let signals = signals.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a new descriptor that no other code owns.
        let signals = unsafe { OwnedFd::from_raw_fd(signals) };
        Ok(Self { served: Some((signals, file, serve)) })
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    ///
    /// Those of `poll` and `sigtimedwait`.
    pub fn next(&self) -> io::Result<Signal> {
        loop {
            if let Some((signals, file, serve)) = &self.served {
                let poll = |file: i32| libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 };
                let mut polls = [poll(signals.as_raw_fd()), poll(file.as_raw_fd())];
                // SAFETY: the array is ours and has the length that is passed.
                let ready = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as u64, -1) };
                if ready > 0 && polls[1].revents != 0 {
                    serve();
                }
            }
            if let Some(signal) = take(self.served.is_none())? {
                return Ok(signal);
            }
        }
    }
}

impl Signal {
    /// Its number.
    pub fn number(&self) -> i32 {
        self.info.si_signo
    }

    /// Returns whether a process sent it: to this process, so it is meant for CMD. Signals of the
    /// kernel itself reach CMD as well where they concern both, as for a key of the terminal.
    pub fn is_sent(&self) -> bool {
        self.info.si_code <= 0
    }

    /// Returns whether its default action is to stop the process.
    pub fn stops(&self) -> bool {
        matches!(self.number(), libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
    }

    /// Sends the same signal to the process `to`, with its value, if it has one. Nothing is sent to
    /// a process that has ended or may not be signalled.
    pub fn pass_on(&self, to: i32) {
        if self.info.si_code == libc::SI_QUEUE {
            let number = self.number();
            // SAFETY: the kernel only reads the structure, which it has itself written before.
            unsafe { libc::syscall(libc::SYS_rt_sigqueueinfo, to, number, &raw const self.info) };
        } else {
            // SAFETY: takes two numbers.
            unsafe { libc::kill(to, self.number()) };
        }
    }
}

/// Stops this process, until it is continued.
pub fn stop() {
    // SAFETY: takes two numbers; a process may stop itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}
