//! CPU time that processes have used.

/// Seconds of CPU time, user and system, that this process's ended and awaited children used, with
/// theirs that they awaited.
pub fn of_children() -> f64 {
    // SAFETY: all fields are numbers, of which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is ours to write; the call can't fail with these arguments.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
