//! Signals that this process gets while CMD runs: taken one by one, in order, and passed on.
//!
//! All of them are blocked, and a blocked signal is delivered to no handler and does nothing by
//! default: it waits to be taken ([`Signals::next`]). That holds for signals that are ignored, too,
//! so a program under `nohup` that handles SIGHUP gets it.
//!
//! The system calls are made without the C library, as those of [`antiphon_report::process`].

use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// The kernel's set of signals: bit N - 1 for signal N.
const BYTES: usize = size_of::<u64>();

/// A signal that came.
#[derive(Clone, Copy)]
pub struct Signal {
    info: libc::siginfo_t,
}

/// Takes a signal that has come. Waits for one, unless `wait` says otherwise.
fn take(wait: bool) -> io::Result<Option<Signal>> {
    let all = u64::MAX;
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let until = if wait { std::ptr::null() } else { &raw const now };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let place = info.as_mut_ptr();
    // SAFETY: the set is as long as we say, and the kernel writes to memory of ours.
    let signal =
        unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &raw const all, place, until, BYTES) };
    if signal > 0 {
        // SAFETY: written above, and zero is a value of all fields.
        return Ok(Some(Signal { info: unsafe { info.assume_init() } }));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        ErrorKind::Interrupted | ErrorKind::WouldBlock => Ok(None),
        _ => Err(error),
    }
}

/// Signals as they come, and what is done meanwhile.
pub struct Signals<'a> {
    /// A file that can be read when it wants to be served, and how; with one by which the same is
    /// known of signals.
    served: Option<(OwnedFd, BorrowedFd<'a>, &'a dyn Fn())>,
}

impl<'a> Signals<'a> {
    /// All of them, while nothing else is done.
    pub fn alone() -> Self {
        Self { served: None }
    }

    /// All of them; when `file` can be read, `serve` is called meanwhile.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn serving(file: BorrowedFd<'a>, serve: &'a dyn Fn()) -> io::Result<Self> {
        let all = u64::MAX;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is as long as we say.
        let signals =
            unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const all, BYTES, flags) };
        let signals = i32::try_from(signals).ok().filter(|&descriptor| descriptor >= 0);
        let signals = signals.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: a new descriptor that no other code knows.
        let signals = unsafe { OwnedFd::from_raw_fd(signals) };
        Ok(Self { served: Some((signals, file, serve)) })
    }

    /// Waits for the next signal.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn next(&self) -> io::Result<Signal> {
        loop {
            if let Some((signals, file, serve)) = &self.served {
                let poll = |file: i32| libc::pollfd { fd: file, events: libc::POLLIN, revents: 0 };
                let mut polls = [poll(signals.as_raw_fd()), poll(file.as_raw_fd())];
                // SAFETY: the array is ours and as long as we say.
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

    /// Whether a process sent it: to this one, so it is meant for CMD. What the kernel sends on its
    /// own account goes to CMD as well where it concerns both, as a key of the terminal does.
    pub fn is_sent(&self) -> bool {
        self.info.si_code <= 0
    }

    /// Whether it stops a process that does nothing about it.
    pub fn stops(&self) -> bool {
        matches!(self.number(), libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
    }

    /// Sends the same to the process `to`, with the value that came with it, if one did. A process
    /// that may not be sent to, or is gone, gets nothing.
    pub fn pass_on(&self, to: i32) {
        if self.info.si_code == libc::SI_QUEUE {
            let number = self.number();
            // SAFETY: the kernel reads the structure, which it has written for us.
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
