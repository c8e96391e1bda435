//! The kernel's counts for this process.

/// Switches and CPU time, up to some moment or between two.
#[derive(Clone, Copy)]
pub struct Usage {
    /// Context switches, wanted or not.
    pub switches: u64,
    /// CPU time of all threads in the program.
    pub user_ns: u64,
    /// CPU time of all threads in the kernel.
    pub system_ns: u64,
}

impl Usage {
    /// Up to now.
    pub fn now() -> Self {
        // SAFETY: all fields are numbers, of which zero is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is ours to write; the call can't fail with these arguments.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
        Self {
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
        }
    }

    /// The usage after an earlier moment, `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            switches: self.switches - before.switches,
            user_ns: self.user_ns - before.user_ns,
            system_ns: self.system_ns - before.system_ns,
        }
    }

    /// CPU time of all threads.
    pub fn cpu_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }
}
