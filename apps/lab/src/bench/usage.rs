//! The kernel's counts for this process.

/// Context switches and CPU time, up to a moment or between two.
#[derive(Clone, Copy)]
pub struct Usage {
    /// Context switches, voluntary or not.
    pub switches: u64,
    /// CPU time of all threads in user mode.
    pub user_ns: u64,
    /// CPU time of all threads in the kernel.
    pub system_ns: u64,
}

impl Usage {
    /// Returns the usage up to now.
    pub fn now() -> Self {
        // SAFETY: all fields are numbers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a local variable; the call can't fail with these arguments.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        }
    }

    /// Returns the usage since the earlier moment `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            switches: self.switches - before.switches,
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
        }
    }

    /// Returns the CPU time of all threads, in nanoseconds.
    pub fn cpu_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}
