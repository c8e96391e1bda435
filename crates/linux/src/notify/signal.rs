//! Notification by a signal to the owner's thread, for owners that wait in a system call that
//! nothing else ends.
//!
//! The signal is blocked in threads that have slept here, so it ends a sleep and interrupts nothing
//! else. A thread that waits in its own system call unblocks it by that call's mask (`ppoll`,
//! `epoll_pwait`, `pselect`), between [`Notify::begin`] and [`Notify::end`]; the call then fails
//! with `EINTR`. The signal has an empty handler: a late notification is harmless to a thread in
//! which it is not blocked, and to a later thread with the same id.
//!
//! It is a standard signal: at most one instance is pending for a thread, and sending it never
//! fails. A real-time signal is queued each time, and sending it fails when the user has too many
//! queued signals (`RLIMIT_SIGPENDING`; signal(7), "Queueing and delivery semantics", and
//! tgkill(2), `EAGAIN`): a notifier would have to wait until a thread takes one.

use core::mem::MaybeUninit;
use core::ptr;
use std::io;

use antiphon_platform::{Deadline, Notify, Parked, Ticket};

use super::{left, timed_out};
use crate::{futex, sys, thread};

/// Size of the kernel's signal sets, in bytes.
const SET: usize = 8;

/// The signals that are free for programs to use.
const USABLE: [i32; 3] = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGURG];

/// Sleeps in `rt_sigtimedwait`, and is notified by a signal.
#[derive(Debug)]
pub struct Signal {
    number: i32,
}

extern "C" fn nothing(_: i32) {}

impl Signal {
    /// Uses `SIGUSR1`, `SIGUSR2` or `SIGURG` for notifications. Any number of mailboxes may share a
    /// signal; a thread that owns several of them checks all of them when it is woken.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for any other signal; `AlreadyExists` if the program has a handler for it or
    /// ignores it: then use another signal. Programs inherit an ignored signal from the program
    /// that starts them. Replacing that by a handler would let the signal end system calls, and
    /// kill children after `exec`.
    pub fn new(number: i32) -> io::Result<Self> {
        if !USABLE.contains(&number) {
            let what = "not a signal that can notify: use SIGUSR1, SIGUSR2 or SIGURG";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut old = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: a query, which writes only `old`.
        if unsafe { libc::sigaction(number, ptr::null(), old.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: written above; all zero bits are valid, too.
        let mut action = unsafe { old.assume_init() };
        let ours = nothing as extern "C" fn(i32) as usize;
        let taken = |what| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        match action.sa_sigaction {
            libc::SIG_IGN => {
                return taken("the program ignores this signal: take another, or reset it first");
            }
            old if old != libc::SIG_DFL && old != ours => {
                return taken("the program has a handler for this signal: take another number");
            }
            _ => {}
        }
        action.sa_sigaction = ours;
        action.sa_flags = 0;
        // SAFETY: an empty handler may run anywhere.
        if unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { number })
    }

    /// The number of the signal, to unblock it in a mask.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.number
    }

    fn set(&self) -> u64 {
        1 << (self.number - 1)
    }
}

impl Notify for Signal {
    /// The ticket names the calling thread.
    fn begin(&self) -> Ticket {
        let set = self.set();
        let args = [libc::SIG_BLOCK as usize, ptr::from_ref(&set) as usize, 0, SET];
        // SAFETY: a set of that size. Only a filter can refuse the call; then the handler runs, and
        // a wait ends at its deadline or by the next notification.
        let _ = unsafe { sys::call(libc::SYS_rt_sigprocmask, args) };
        Ticket::MIN.saturating_add(u64::from(thread::current().0) - 1)
    }

    unsafe fn sleep(&self, _: Ticket, deadline: Option<Deadline>) -> Parked {
        let (set, left) = (self.set(), left(deadline));
        let left = left.as_ref().map_or(0, |left| ptr::from_ref(left) as usize);
        let args = [ptr::from_ref(&set) as usize, 0, left, SET];
        // SAFETY: a set of that size and a time, both readable.
        match unsafe { sys::call(libc::SYS_rt_sigtimedwait, args) } {
            Err(sys::Errno(libc::EAGAIN)) => timed_out(deadline),
            Ok(_) | Err(sys::Errno(libc::EINTR)) => Parked::Woken,
            // As in `EventFd::sleep`: a filter refuses the call.
            Err(_) => {
                futex::yield_now();
                timed_out(deadline)
            }
        }
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, ticket: Ticket) {
        // SAFETY: takes no arguments.
        let process = unsafe { libc::getpid() } as usize;
        let args = [process, ticket.get() as usize, self.number as usize];
        // SAFETY: takes only numbers. A thread that has ended needs no notification, and a thread
        // for which the signal is pending needs no second one.
        let _ = unsafe { sys::call(libc::SYS_tgkill, args) };
    }
}
