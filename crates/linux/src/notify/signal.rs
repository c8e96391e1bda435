//! A signal to the owner's thread: for owners that wait in a system call which nothing else ends.
//!
//! The signal is blocked in threads that have slept here, so it ends a sleep and interrupts nothing
//! else. A thread that waits in a call of its own lets it through by that call's mask (`ppoll`,
//! `epoll_pwait`, `pselect`), between dozing off and waking up; the call then fails with `EINTR`.
//! The signal has a handler that does nothing: a late notification that meets a thread in which it
//! is not blocked, or another thread of the same number, is harmless.
//!
//! It is a standard signal: of those one at a time is pending for a thread, and none is refused. A
//! real-time signal is queued each time, and refused when the user has too many in the queues
//! (`RLIMIT_SIGPENDING`; signal(7), "Queueing and delivery semantics", and tgkill(2), `EAGAIN`): a
//! notifier would have to wait until a thread takes one.

use core::mem::MaybeUninit;
use core::ptr;
use std::io;

use antiphon_platform::{Deadline, Notify, Parked, Ticket};

use super::{left, timed_out};
use crate::{futex, sys, thread};

/// Bytes of the kernel's signal sets.
const SET: usize = 8;

/// The signals that programs may use as they like.
const USABLE: [i32; 3] = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGURG];

/// Sleeps in `rt_sigtimedwait`, and is notified by a signal.
#[derive(Debug)]
pub struct Signal {
    number: i32,
}

extern "C" fn nothing(_: i32) {}

impl Signal {
    /// Is told by `SIGUSR1`, `SIGUSR2` or `SIGURG`. Any number of mailboxes may have the same; a
    /// thread that owns several of them looks at all when it is woken.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is another signal, `AlreadyExists` if the program has a handler for it
    /// or ignores it: take another one. Programs that are started by one that ignores a signal do
    /// so too. A handler of ours would let it end system calls, and children that `exec` die of it.
    pub fn new(number: i32) -> io::Result<Self> {
        if !USABLE.contains(&number) {
            let what = "not a signal that can notify: use SIGUSR1, SIGUSR2 or SIGURG";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut old = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks, and writes `old`.
        if unsafe { libc::sigaction(number, ptr::null(), old.as_mut_ptr()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: written above; all zero is one too.
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
        // SAFETY: a handler that does nothing may run anywhere.
        if unsafe { libc::sigaction(number, &raw const action, ptr::null_mut()) } == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { number })
    }

    /// The signal, to let it through a mask.
    #[must_use]
    pub fn number(&self) -> i32 {
        self.number
    }

    fn set(&self) -> u64 {
        1 << (self.number - 1)
    }
}

impl Notify for Signal {
    /// The ticket is the calling thread.
    fn begin(&self) -> Ticket {
        let set = self.set();
        let args = [libc::SIG_BLOCK as usize, ptr::from_ref(&set) as usize, 0, SET];
        // SAFETY: a set of that size. It can't be refused but by a filter; then the handler runs,
        // and a wait ends at its deadline or by the next notification.
        let _ = unsafe { sys::call(libc::SYS_rt_sigprocmask, args) };
        Ticket::MIN.saturating_add(u64::from(thread::current().0) - 1)
    }

    unsafe fn sleep(&self, _: Ticket, deadline: Option<Deadline>) -> Parked {
        let (set, left) = (self.set(), left(deadline));
        let left = left.as_ref().map_or(0, |left| ptr::from_ref(left) as usize);
        let args = [ptr::from_ref(&set) as usize, 0, left, SET];
        // SAFETY: a set of that size and a time, both there to read.
        match unsafe { sys::call(libc::SYS_rt_sigtimedwait, args) } {
            Err(sys::Errno(libc::EAGAIN)) => timed_out(deadline),
            Ok(_) | Err(sys::Errno(libc::EINTR)) => Parked::Woken,
            // As of `EventFd`.
            Err(_) => {
                futex::yield_now();
                timed_out(deadline)
            }
        }
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, ticket: Ticket) {
        // SAFETY: takes nothing.
        let process = unsafe { libc::getpid() } as usize;
        let args = [process, ticket.get() as usize, self.number as usize];
        // SAFETY: takes numbers. A thread that has ended needs no notification, and one for which
        // the signal is pending no other.
        let _ = unsafe { sys::call(libc::SYS_tgkill, args) };
    }
}
