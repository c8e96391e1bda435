//! The CPU time of a thread: `CLOCK_THREAD_CPUTIME_ID` for the caller, `/proc` for other threads.

use antiphon_platform::ThreadId;

use crate::{clock, thread};

/// The kernel's account of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// The CPU time of the thread since its start, in nanoseconds. The kernel updates it at ticks
    /// and when the thread leaves its CPU. `None` if it is zero, or the kernel keeps no such
    /// account (`CONFIG_SCHED_INFO`).
    pub ran_ns: Option<u64>,
    /// Whether the thread is runnable. `None` if there is no such thread, or `/proc` can't be read.
    pub runs: Option<bool>,
}

/// The CPU time of the calling thread since its start, in nanoseconds. A system call.
#[must_use]
pub fn cpu_time_ns() -> u64 {
    clock::thread_cpu_ns()
}

/// The kernel's account of a thread, of any process of the caller's namespace: its first number in
/// `/proc/pid/schedstat` (`Documentation/scheduler/sched-stats.rst`), and its state. Opens and
/// reads two files.
#[must_use]
pub fn account(thread: ThreadId) -> Account {
    let mut buffer = [0; 64];
    let told = thread::of_proc(thread, b"/schedstat", &mut buffer);
    let ran_ns = told.and_then(number).filter(|&ns| ns > 0);
    let runs = thread::state(thread).map(|state| state == b'R');
    Account { ran_ns, runs }
}

/// The number at the beginning of `text`.
fn number(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    str::from_utf8(&text[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn who_computes_has_had_more_and_who_waits_sleeps() {
        let before = cpu_time_ns();
        while cpu_time_ns() == before {}
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            while cpu_time_ns() < 2_000_000 {}
            tell.send(thread::current()).expect("the test waits");
            let _ = ended.recv();
        });
        let id = told.recv().expect("the thread tells");
        while account(id).runs == Some(true) {
            std::thread::yield_now();
        }
        let seen = account(id);
        assert_eq!(seen.runs, Some(false));
        assert!(seen.ran_ns.is_none_or(|ns| ns >= 2_000_000), "{seen:?}");
        drop(end);
        sleeper.join().expect("it ends");
        assert_eq!(account(ThreadId(u32::MAX)), Account { ran_ns: None, runs: None });
    }

    #[test]
    fn a_number_ends_where_its_digits_do() {
        assert_eq!((number(b"12 3 4\n"), number(b" 12"), number(b"12")), (Some(12), None, None));
    }
}
