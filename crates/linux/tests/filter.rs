//! Tests of system-call filters and missing kernel features: locks work without refused calls.

mod support;

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use std::process::Command;

use antiphon_linux::light::enable_light;
use antiphon_linux::{Linux, end_thread, expect_filter, filtered, survey, yield_now};
use antiphon_platform::{
    Clock, Deadline, Hint, Hints as _, LightUnlock as _, Parked, Platform, Topology as _,
};
use support::{FORKS, REFUSE, arena, filter, filter_all, in_child};

/// Makes the kernel kill the process for all but `calls` from now on, in this thread and its
/// children.
fn allow_only(calls: &[libc::c_long]) -> bool {
    filter_all(calls, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS)
}

/// Uses a contended lock, twice.
fn lock_paths() -> bool {
    (0..2).all(|_| {
        Linux::hint(Hint::SpinBegin);
        let crowded = Linux::crowded();
        Linux::hint(Hint::SpinEnd);
        let Some(id) = arena().take() else { return false };
        let Some(waiter) = arena().resolve(id) else { return false };
        let past = Some(Deadline { clock: Clock::Monotonic, ns: 1 });
        // Twice, because the wake below was for the node's last wait and is spurious in this one.
        let parked = [(); 2].map(|()| Linux::park(waiter, past));
        let woken = arena().reference(id.index()).map(Linux::unpark);
        arena().give(id);
        parked[1] == Parked::TimedOut
            && woken.is_some()
            && Linux::random() != 0
            && (Linux::numa() || Linux::socket().0 == 0)
            && (crowded || !Linux::light())
    })
}

#[test]
fn a_filter_that_kills_for_files_and_fences_is_survived() {
    assert!(in_child(FORKS[0].1, || {
        survey();
        let calls = [
            libc::SYS_membarrier,
            libc::SYS_rseq,
            libc::SYS_openat,
            libc::SYS_read,
            libc::SYS_close,
            libc::SYS_clone,
            libc::SYS_prctl,
        ];
        filter(&calls, libc::SECCOMP_RET_KILL_PROCESS) && lock_paths()
    }));
}

/// The number of the only thread of a process.
fn first_thread() -> u32 {
    static ID: AtomicU32 = AtomicU32::new(0);
    if ID.load(Relaxed) == 0 {
        // SAFETY: takes no arguments.
        ID.store(unsafe { libc::gettid() }.cast_unsigned(), Relaxed);
    }
    ID.load(Relaxed)
}

#[test]
fn a_filter_that_is_expected_may_kill_for_all_but_the_futex() {
    assert!(in_child(FORKS[0].1, || {
        let me = first_thread();
        expect_filter(first_thread);
        filtered() && allow_only(&[libc::SYS_futex, libc::SYS_exit_group]) && {
            yield_now();
            // Uses all nodes that were opened in advance, and then waits without nodes.
            let mut taken = Vec::with_capacity(1 << 14);
            taken.extend((0..1 << 14).map_while(|_| arena().take()));
            let many = (4096..1 << 14).contains(&taken.len());
            taken.into_iter().for_each(|id| arena().give(id));
            let alive = Linux::alive(Linux::thread());
            many && lock_paths()
                && Linux::thread().0 == me
                && alive
                && !Linux::light()
                && Linux::heavy_fence().is_err()
        }
    }));
}

/// If no call can tell that a thread has ended, ending threads give their nodes back.
#[test]
fn threads_that_end_leave_no_nodes() {
    assert!(in_child(FORKS[0].1, || {
        expect_filter(first_thread);
        let one = || {
            let taken = [(); 2].map(|()| arena().take());
            taken.into_iter().flatten().for_each(|id| arena().give(id));
            end_thread();
        };
        (0..3000).all(|_| std::thread::spawn(one).join().is_ok()) && arena().high_water() < 100
    }));
}

#[test]
fn refused_questions_are_answered_by_guesses() {
    assert!(in_child(FORKS[0].1, || {
        let calls = [
            libc::SYS_openat,
            libc::SYS_sched_getaffinity,
            libc::SYS_getrusage,
            libc::SYS_sched_yield,
            libc::SYS_rt_sigprocmask,
            libc::SYS_tkill,
        ];
        filter(&calls, REFUSE) && lock_paths() && Linux::alive(Linux::thread())
    }));
}

#[test]
fn without_wiped_memory_there_are_no_nodes() {
    assert!(in_child(FORKS[0].1, || {
        filter(&[libc::SYS_madvise], REFUSE)
            && arena().take().is_none()
            && (1..=1023).contains(&Linux::epoch())
            && in_child(FORKS[0].1, || {
                // No state is cached that the child would have to forget.
                let parent = Linux::thread();
                arena().take().is_none() && in_child(FORKS[2].1, || Linux::thread() != parent)
            })
    }));
}

#[test]
fn a_filter_before_the_switch_prevents_it() {
    for call in [libc::SYS_membarrier, libc::SYS_rseq] {
        assert!(in_child(FORKS[0].1, || {
            filter(&[call], REFUSE)
                && enable_light().is_err()
                && !Linux::light()
                && !Linux::fenced()
                && lock_paths()
        }));
    }
}

#[test]
fn a_filter_after_the_switch_makes_fences_fail() {
    assert!(in_child(FORKS[0].1, || {
        enable_light().is_err()
            || Linux::heavy_fence().is_ok()
                && filter(&[libc::SYS_membarrier], REFUSE)
                && Linux::heavy_fence().is_err()
                && Linux::fenced()
    }));
}

/// Runs itself again with rseq turned off in glibc.
#[test]
fn without_rseq_the_mode_stays_exchange() {
    const TUNABLES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");
    if std::env::var_os(TUNABLES.0).is_some_and(|value| value == TUNABLES.1) {
        assert!(enable_light().is_err());
        assert_eq!((Linux::light(), Linux::fenced()), (false, false));
        return;
    }
    let own = std::env::current_exe().expect("this test has a file");
    let again = Command::new(own)
        .args(["--exact", "without_rseq_the_mode_stays_exchange"])
        .env(TUNABLES.0, TUNABLES.1)
        .output()
        .expect("a second copy runs");
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
}
