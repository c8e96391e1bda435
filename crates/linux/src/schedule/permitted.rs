//! What the kernel lets this process do with its threads.

use core::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;

use antiphon_platform::ThreadId;

use super::{nice, set_fifo, set_nice, set_slice};
use crate::sys::{self, Errno};

/// The kernel refused to change, or tell, how a thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    errno: i32,
}

impl Refused {
    /// A thread has ended without an answer.
    pub const FAILED: Self = Self { errno: libc::EAGAIN };

    pub(super) fn by(errno: Errno) -> Self {
        Self { errno: errno.0 }
    }

    /// The code of the refusal, as in `errno(3)`.
    #[must_use]
    pub const fn errno(self) -> i32 {
        self.errno
    }

    /// Whether it is a matter of permission.
    #[must_use]
    pub const fn forbidden(self) -> bool {
        matches!(self.errno, libc::EPERM | libc::EACCES)
    }

    /// Whether there is no such thread.
    #[must_use]
    pub const fn gone(self) -> bool {
        self.errno == libc::ESRCH
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.errno {
            libc::EPERM => {
                "no permission: it needs CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of 2 or more \
                 (`ulimit -r 2`, `@audio - rtprio 2` in /etc/security/limits.d, LimitRTPRIO=2 in \
                 a systemd unit); rtkit is not asked, as what it grants can't be given back and \
                 had again"
            }
            libc::ESRCH => "no such thread",
            libc::EOPNOTSUPP => "this kernel knows no slices: they are there since Linux 6.12",
            libc::ENOSYS => "a filter of system calls, or the kernel, has no such call",
            libc::EAGAIN => "no thread could be started for it",
            libc::EINVAL => "the thread is in a class that has no such thing",
            other => return write!(f, "error {other} of the kernel"),
        })
    }
}

impl core::error::Error for Refused {}

impl From<std::io::Error> for Refused {
    fn from(error: std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::FAILED, |errno| Self { errno })
    }
}

/// What this process may do with its own threads.
#[derive(Clone, Copy, Debug)]
pub struct Permitted {
    /// Real-time priorities: `SCHED_FIFO` with priority 2.
    pub real_time: Result<(), Refused>,
    /// Slices of its own for threads that share time.
    pub slices: Result<(), Refused>,
    /// More weight than they have: a lower nice value.
    pub weight: Result<(), Refused>,
}

/// What this process may do: tried on a thread that is started for that, and then ends. Blocks
/// until it has.
#[must_use]
pub fn permitted() -> Permitted {
    let me = ThreadId(0);
    let probe = move || Permitted {
        slices: set_slice(me, *super::SLICES_NS.start()).map(drop),
        weight: nice(me).and_then(|nice| set_nice(me, nice - 1)),
        // Last: it ends with that.
        real_time: set_fifo(me, 2),
    };
    let failed = Err(Refused::FAILED);
    let refused = Permitted { real_time: failed, slices: failed, weight: failed };
    let found = Mutex::new(refused);
    thread::scope(|scope| {
        let run = || *found.lock().unwrap_or_else(PoisonError::into_inner) = probe();
        // Where no thread can be started, nothing is permitted.
        let _ = thread::Builder::new().name("antiphon-probe".into()).spawn_scoped(scope, run);
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `start` while the calling thread takes no signals, so that the threads which it starts
/// take none, ever: a handler must not run with their priority.
pub fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    /// The kernel's set is of 64 signals.
    const BYTES: usize = 8;
    let all = u64::MAX;
    let mut before = 0_u64;
    let mask = |how: i32, set: *const u64, old: *mut u64| {
        let args = [how as usize, set as usize, old as usize, BYTES];
        // SAFETY: sets of 64 signals, of which the first is read, and the second, if any, is ours
        // to write.
        let _ = unsafe { sys::call(libc::SYS_rt_sigprocmask, args) };
    };
    mask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    let result = start();
    mask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut());
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{class, slice_ns};

    #[test]
    fn a_probe_leaves_the_caller_as_it_was() {
        let me = ThreadId(0);
        let before = (class(me), slice_ns(me));
        let found = permitted();
        assert_eq!((class(me), slice_ns(me)), before);
        assert_eq!(found.real_time.is_ok(), permitted().real_time.is_ok());
    }

    #[test]
    fn a_refusal_says_how_to_get_the_right() {
        let said = Refused { errno: libc::EPERM }.to_string();
        for way in ["ulimit -r", "limits.d", "CAP_SYS_NICE", "rtkit"] {
            assert!(said.contains(way), "{said}");
        }
    }
}
