//! A poll while no thread is due makes no system call: a filter of the kernel counts them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::spawn;

use antiphon_coop::{Alone, Ask, Cooperate as _, Scheduled};
use antiphon_hints::now_ns;

use crate::policy::FAIR;
use crate::scheduler::under;
use crate::start::Failure;
use crate::thread::{become_of, exact_timers};

/// System calls that the filter has stopped.
static STOPPED: AtomicU64 = AtomicU64::new(0);

/// Polls of the tier of event loops, by a thread that has work, within one turn.
pub fn poll() -> Result<String, Failure> {
    let (polls, stopped, one) = under(&["full"], |_| {
        let thread = spawn(|| -> io::Result<(u64, u64, u64)> {
            become_of(FAIR)?;
            exact_timers();
            let mut tier = Scheduled::over(Alone);
            let served = tier.served();
            let mut poll = || {
                let release_ns = Some(now_ns() + 1_000_000_000);
                tier.poll(Ask { release_ns, importance: Some(1) }, &mut |_| ())
            };
            while !served.is_served() {
                poll();
                std::thread::yield_now();
            }
            // The last of these begins a turn; at its end a poll gives the CPU away.
            std::thread::yield_now();
            stop_calls()?;
            let end_ns = poll().poll_at_ns.unwrap_or(0).saturating_sub(1_000_000);
            let mut polls = 0;
            while now_ns() < end_ns {
                poll();
                polls += 1;
            }
            let stopped = STOPPED.load(Ordering::Relaxed);
            // SAFETY: returns a number.
            unsafe { libc::getppid() };
            Ok((polls, stopped, STOPPED.load(Ordering::Relaxed) - stopped))
        });
        Ok(thread.join().map_err(|_| "a thread panicked")??)
    })?;
    let told = format!("{stopped} system calls in {polls} polls; {one} in one getppid");
    if stopped == 0 && polls >= 100 && one == 1 { Ok(told) } else { Err(told.into()) }
}

extern "C" fn count(_: libc::c_int) {
    // Relaxed: a count.
    STOPPED.fetch_add(1, Ordering::Relaxed);
}

/// Counts the calling thread's system calls from here on, and fails them; but not those with which
/// a thread ends.
fn stop_calls() -> io::Result<()> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const ENDS: [libc::c_long; 8] = [
        libc::SYS_exit,
        libc::SYS_futex,
        libc::SYS_madvise,
        libc::SYS_munmap,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sched_setscheduler,
        libc::SYS_sigaltstack,
    ];
    let one = |code, k, jt| libc::sock_filter { code, jt, jf: 0, k };
    let mut filter = vec![one(LOAD, 0, 0)];
    for (at, call) in ENDS.into_iter().enumerate() {
        filter.push(one(IS, call as u32, (ENDS.len() - at) as u8));
    }
    filter.push(one(RETURN, libc::SECCOMP_RET_TRAP, 0));
    filter.push(one(RETURN, libc::SECCOMP_RET_ALLOW, 0));
    let program =
        libc::sock_fprog { len: filter.len() as libc::c_ushort, filter: filter.as_mut_ptr() };
    // SAFETY: the handler only adds to an atomic.
    unsafe { libc::signal(libc::SIGSYS, count as *const () as libc::sighandler_t) };
    // SAFETY: concerns the calling thread, which makes none of the other calls but to be counted.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
