//! Classifies the waiting of a system call, from one line of `/proc/PID/task/TID/syscall`.
//!
//! | line | meaning |
//! |---|---|
//! | `running` | on a CPU, or wants one |
//! | `-1 SP PC` | blocked outside of a system call: a page fault |
//! | `NUMBER ARG0 … ARG5 SP PC` | blocked in that system call |
//!
//! All calls that wait for a word in memory are `futex` to the kernel; the operation shows what
//! glibc waits for. Its `sem_wait` uses a private bit-set wait against the realtime clock on the
//! value 0. Its `pthread_join` waits on a thread id, and that wait is not private, because the
//! kernel does the waking. That is how glibc 2.36 works, and no contract: a report says "samples".

/// The kind of wait that a thread is blocked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Wait {
    /// A word in memory: locks, conditions, and other uses of futexes.
    Futex,
    /// A semaphore, of POSIX or of System V.
    Semaphore,
    /// The end of another thread or process.
    Join,
    /// A device, a pipe, a socket, a page.
    Io,
    /// A time, or a signal.
    Sleep,
    /// Something else.
    Other,
}

const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_PRIVATE: u64 = 128;
const FUTEX_CLOCK_REALTIME: u64 = 256;

/// The kind of wait of the thread with that line; `is_thread` knows the thread ids of its process.
/// `None` if the thread is running.
pub fn classify(line: &str, is_thread: impl Fn(u64) -> bool) -> Option<Wait> {
    let mut words = line.split_ascii_whitespace();
    let number = words.next()?;
    if number == "running" {
        return None;
    }
    let Ok(number) = number.parse::<i64>() else { return Some(Wait::Other) };
    let mut arguments = [0; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        *argument = u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0);
    }
    Some(match number {
        -1 => Wait::Io,
        libc::SYS_futex => futex(arguments[1], arguments[2], is_thread),
        number if SEMAPHORE.contains(&number) => Wait::Semaphore,
        number if JOIN.contains(&number) => Wait::Join,
        number if SLEEP.contains(&number) => Wait::Sleep,
        number if IO.contains(&number) => Wait::Io,
        _ => Wait::Other,
    })
}

/// Returns whether the line is of a sleep up to a time on the clock, as of a thread that keeps to a
/// rate.
pub fn is_up_to_a_time(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let is_sleep =
        words.next().and_then(|word| word.parse().ok()) == Some(libc::SYS_clock_nanosleep);
    let flags = words.nth(1).map(|word| word.trim_start_matches("0x"));
    let flags = flags.and_then(|word| i32::from_str_radix(word, 16).ok());
    is_sleep && flags.is_some_and(|flags| flags & libc::TIMER_ABSTIME != 0)
}

fn futex(operation: u64, value: u64, is_thread: impl Fn(u64) -> bool) -> Wait {
    let realtime = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
    match operation {
        operation if operation == realtime | FUTEX_PRIVATE && value as u32 == 0 => Wait::Semaphore,
        // Other code waits this way, too, on words of its own: `std::atomic::wait`.
        operation if operation == realtime && is_thread(value) => Wait::Join,
        FUTEX_WAIT if is_thread(value) => Wait::Join,
        _ => Wait::Futex,
    }
}

const SEMAPHORE: [i64; 2] = [libc::SYS_semop, libc::SYS_semtimedop];
const JOIN: [i64; 2] = [libc::SYS_wait4, libc::SYS_waitid];
const SLEEP: [i64; 4] = [
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
];
const IO: [i64; 34] = [
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_write,
    libc::SYS_pwrite64,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_io_getevents,
    libc::SYS_io_uring_enter,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(not(target_arch = "x86_64"))]
    libc::SYS_msync,
    #[cfg(not(target_arch = "x86_64"))]
    libc::SYS_statx,
    #[cfg(not(target_arch = "x86_64"))]
    libc::SYS_getdents64,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_told_apart() {
        let classify = |line: &str| classify(line, |_| false);
        assert_eq!(classify("running"), None);
        assert_eq!(classify(""), None);
        assert_eq!(classify("-1 0x7ffd 0x7f00"), Some(Wait::Io));
        let line = |number: i64| format!("{number} 0x0 0x7f0a 0x1 0x0 0x0 0x0 0x7ffd 0x7f00");
        assert_eq!(classify(&line(libc::SYS_read)), Some(Wait::Io));
        assert_eq!(classify(&line(libc::SYS_clock_nanosleep)), Some(Wait::Sleep));
        assert_eq!(classify(&line(libc::SYS_wait4)), Some(Wait::Join));
        assert_eq!(classify(&line(libc::SYS_semop)), Some(Wait::Semaphore));
        assert_eq!(classify(&line(9999)), Some(Wait::Other));
    }

    #[test]
    fn a_sleep_up_to_a_time_has_its_flag() {
        let line = |number: i64, flags: u64| format!("{number} 0x1 {flags:#x} 0x7ffd 0x0 0x0 0x0");
        assert!(is_up_to_a_time(&line(libc::SYS_clock_nanosleep, 1)));
        assert!(!is_up_to_a_time(&line(libc::SYS_clock_nanosleep, 0)));
        assert!(!is_up_to_a_time(&line(libc::SYS_nanosleep, 1)));
        assert!(!is_up_to_a_time("running"));
    }

    #[test]
    fn waits_on_words_are_told_apart_by_their_operation() {
        let futex = |operation: u64, value: u64| {
            let line = format!("{} 0x7f00 {operation:#x} {value:#x} 0x0", libc::SYS_futex);
            classify(&line, |id| id == 4711)
        };
        assert_eq!(futex(0x80, 2), Some(Wait::Futex));
        assert_eq!(futex(0x89, 0), Some(Wait::Futex));
        assert_eq!(futex(0x189, 0), Some(Wait::Semaphore));
        assert_eq!(futex(0x189, 7), Some(Wait::Futex));
        assert_eq!(futex(0x109, 4711), Some(Wait::Join));
        assert_eq!((futex(0, 4711), futex(0, 98)), (Some(Wait::Join), Some(Wait::Futex)));
    }
}
