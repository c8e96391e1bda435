//! CPU time of child processes.

use std::ops::Sub;

/// CPU time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuTime {
    /// Time in the programs themselves.
    pub user_s: f64,
    /// Time in the kernel, for them.
    pub system_s: f64,
}

impl CpuTime {
    /// Both together.
    #[must_use]
    pub fn all_s(self) -> f64 {
        self.user_s + self.system_s
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self { user_s: self.user_s - earlier.user_s, system_s: self.system_s - earlier.system_s }
    }
}

/// CPU time of this process's children that have ended and were waited for, including those that
/// they waited for.
#[must_use]
pub fn of_children() -> CpuTime {
    // SAFETY: all fields are numbers, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours to write; the call can't fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    CpuTime { user_s: seconds(usage.ru_utime), system_s: seconds(usage.ru_stime) }
}
