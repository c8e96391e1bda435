//! The times that a thread ran, and that it waited for a CPU.

use antiphon_platform::ThreadId;

use crate::{clock, sys};

/// The times of a thread since its start, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The time that the thread ran.
    pub ran_ns: u64,
    /// The time that the thread was runnable while others ran.
    pub waited_ns: u64,
}

/// The CPU time of a thread of this process, in nanoseconds. `None` if there is no such thread in
/// this process.
#[must_use]
pub fn cpu_ns(thread: ThreadId) -> Option<u64> {
    /// `CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED` of the kernel's `posix-timers.h`: the id of a thread's
    /// clock is made of the complement of the thread's number and this.
    const THREAD: i32 = 4 | 2;
    // Thread numbers have at most 22 bits; a larger number would name another clock.
    let number = i32::try_from(thread.0).ok().filter(|number| number >> 22 == 0)?;
    read(!number << 3 | THREAD)
}

/// The CPU time of the calling thread, in nanoseconds; 0 if it can't be read.
#[must_use]
pub fn own_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

fn read(id: libc::clockid_t) -> Option<u64> {
    let mut time = clock::timespec(0);
    let args = [id as usize, (&raw mut time) as usize];
    // SAFETY: `time` is a writable local.
    unsafe { sys::call(libc::SYS_clock_gettime, args) }.ok()?;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}

/// The times of the calling thread, from `/proc/thread-self/schedstat`. `None` if the kernel does
/// not count them (`CONFIG_SCHED_INFO`), or there is no `/proc`.
#[must_use]
pub fn times() -> Option<Times> {
    let mut buffer = [0; 64];
    let text = sys::read_file(c"/proc/thread-self/schedstat", &mut buffer)?;
    let mut numbers = core::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let mut next = || numbers.next()?.parse().ok();
    Some(Times { ran_ns: next()?, waited_ns: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread;

    #[test]
    fn a_thread_that_runs_has_run() {
        let me = thread::current();
        let (before, told) = (own_cpu_ns(), times());
        while own_cpu_ns() < before + 2_000_000 {
            core::hint::spin_loop();
        }
        assert!(cpu_ns(me) >= Some(before + 2_000_000));
        let (Some(told), Some(now)) = (told, times()) else {
            eprintln!("skipped: no schedstat here");
            return;
        };
        assert!(now.ran_ns > told.ran_ns && now.waited_ns >= told.waited_ns, "{told:?} {now:?}");
    }

    #[test]
    fn others_threads_have_no_clock_here() {
        assert_eq!(cpu_ns(antiphon_platform::ThreadId(i32::MAX.cast_unsigned())), None);
        // Process 1 is another process, unless it is this one.
        if std::process::id() != 1 {
            assert_eq!(cpu_ns(antiphon_platform::ThreadId(1)), None);
        }
    }
}
