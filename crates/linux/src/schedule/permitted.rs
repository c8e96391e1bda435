//! The scheduling rights that the kernel grants this process.

use core::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;

use antiphon_platform::ThreadId;

use super::{nice, set_fifo, set_nice, set_slice};
use crate::sys::{self, Errno};

/// The kernel refused to change or report a thread's scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    errno: i32,
    asked: Asked,
}

/// The right that was refused. The advice on how to get it depends on this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A right for which there is no limit.
    Other,
    /// A real-time priority.
    RealTime(u8),
    /// A nice value.
    Nice(i32),
}

impl Refused {
    /// The probing thread has ended without an answer.
    pub const FAILED: Self = Self { errno: libc::EAGAIN, asked: Asked::Other };

    pub(super) fn by(errno: Errno) -> Self {
        Self { errno: errno.0, asked: Asked::Other }
    }

    /// The same refusal, for the right `asked`.
    pub(super) fn of(self, asked: Asked) -> Self {
        Self { asked, ..self }
    }

    /// The code of the refusal, as in `errno(3)`.
    #[must_use]
    pub const fn errno(self) -> i32 {
        self.errno
    }

    /// Returns whether permission is missing.
    #[must_use]
    pub const fn forbidden(self) -> bool {
        matches!(self.errno, libc::EPERM | libc::EACCES)
    }

    /// Returns whether there is no such thread.
    #[must_use]
    pub const fn gone(self) -> bool {
        self.errno == libc::ESRCH
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.asked {
            Asked::RealTime(priority) if self.forbidden() => {
                return write!(
                    f,
                    "no permission: it needs CAP_SYS_NICE, or a limit RLIMIT_RTPRIO of {priority} \
                     or more (`ulimit -r {priority}`, `@audio - rtprio {priority}` in \
                     /etc/security/limits.d, LimitRTPRIO={priority} in a systemd unit), and a \
                     cpu.rt_runtime_us above 0 in a control group that has one; rtkit is not \
                     asked, as what it grants can't be given back and had again"
                );
            }
            Asked::Nice(nice) if self.forbidden() => {
                let limit = 20 - nice;
                return write!(
                    f,
                    "no permission to weigh more: it needs CAP_SYS_NICE, or a limit RLIMIT_NICE \
                     of {limit} or more (`ulimit -e {limit}`, LimitNICE={nice} in a systemd unit)"
                );
            }
            _ => {}
        }
        f.write_str(match self.errno {
            libc::EPERM | libc::EACCES => "no permission",
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
        error.raw_os_error().map_or(Self::FAILED, |errno| Self::by(Errno(errno)))
    }
}

/// The scheduling rights of this process over its own threads.
#[derive(Clone, Copy, Debug)]
pub struct Permitted {
    /// Real-time priorities: `SCHED_FIFO` with priority 3, so that there are two priorities below.
    pub real_time: Result<(), Refused>,
    /// Custom slices for time-sharing threads.
    pub slices: Result<(), Refused>,
    /// A higher weight: a nice value that is lower by the requested steps.
    pub weight: Result<(), Refused>,
}

/// Determines the scheduling rights of this process, including a nice value that is lower by
/// `steps`, by trying them on a new thread. Blocks until that thread has ended.
#[must_use]
pub fn permitted(steps: i32) -> Permitted {
    let me = ThreadId(0);
    let probe = move || Permitted {
        slices: set_slice(me, *super::SLICES_NS.start()).map(drop),
        weight: nice(me).and_then(|nice| set_nice(me, nice - steps)),
        // Last, because it changes the class of the thread.
        real_time: set_fifo(me, 3),
    };
    let failed = Err(Refused::FAILED);
    let refused = Permitted { real_time: failed, slices: failed, weight: failed };
    let found = Mutex::new(refused);
    thread::scope(|scope| {
        let run = || *found.lock().unwrap_or_else(PoisonError::into_inner) = probe();
        // If no thread can be started, nothing counts as permitted.
        let _ = thread::Builder::new().name("antiphon-probe".into()).spawn_scoped(scope, run);
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `start` while all signals are blocked in the calling thread, so that the threads that it
/// starts never take any: a handler must not run with their priority. The C library's own signals,
/// below `SIGRTMIN`, stay unblocked: `setuid` uses one of them to change the user of each thread,
/// and its caller waits for all threads.
pub fn without_signals<R>(start: impl FnOnce() -> R) -> R {
    /// Size of the kernel's set of 64 signals, in bytes.
    const BYTES: usize = 8;
    /// The kernel's number of the first real-time signal.
    const FIRST: i32 = 32;
    let all = (FIRST..libc::SIGRTMIN()).fold(u64::MAX, |all, own| all & !(1 << (own - 1)));
    let mut before = 0_u64;
    let mask = |how: i32, set: *const u64, old: *mut u64| {
        let args = [how as usize, set as usize, old as usize, BYTES];
        // SAFETY: sets of 64 signals: the first is readable, and the second, if any, is a writable
        // local.
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
        let found = permitted(1);
        assert_eq!((class(me), slice_ns(me)), before);
        assert_eq!(found.real_time.is_ok(), permitted(1).real_time.is_ok());
    }

    #[test]
    fn a_refusal_says_how_to_get_the_right() {
        let refused = |errno, asked| Refused { errno, asked }.to_string();
        let said = refused(libc::EPERM, Asked::RealTime(50));
        for way in ["ulimit -r 50", "limits.d", "CAP_SYS_NICE", "rtkit", "cpu.rt_runtime_us"] {
            assert!(said.contains(way), "{said}");
        }
        let said = refused(libc::EACCES, Asked::Nice(-12));
        for way in ["CAP_SYS_NICE", "ulimit -e 32", "LimitNICE=-12"] {
            assert!(said.contains(way), "{said}");
        }
        assert_eq!(refused(libc::EPERM, Asked::Other), "no permission");
        assert_eq!(refused(libc::ESRCH, Asked::Nice(-1)), "no such thread");
    }
}
