//! Threads of a case: their policies, their clocks, and loops that use the CPU.
//!
//! No loop here has a `PAUSE` instruction: QEMU leaves its loop of translated code for each.

use std::hint::black_box;
use std::io;
use std::mem::{size_of, zeroed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use antiphon_hints::now_ns;
use libc::sched_attr;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    /// By the kernel's fair scheduler; a slice of 0 is the default.
    Fair { nice: i32, slice_ns: u64 },
    /// By priority.
    Fifo(u32),
    /// By `SCHED_DEADLINE`: for so long in each period.
    Deadline { runtime_ns: u64, period_ns: u64 },
    /// By the scheduler of sched_ext.
    Ext { nice: i32 },
}

/// Puts the calling thread under a policy.
pub fn become_of(policy: Policy) -> io::Result<()> {
    let mut wanted = nothing();
    match policy {
        Policy::Fair { nice, slice_ns } => {
            (wanted.sched_nice, wanted.sched_runtime) = (nice, slice_ns);
        }
        Policy::Fifo(priority) => (wanted.sched_policy, wanted.sched_priority) = (1, priority),
        Policy::Deadline { runtime_ns, period_ns } => {
            wanted.sched_policy = 6;
            wanted.sched_runtime = runtime_ns;
            (wanted.sched_deadline, wanted.sched_period) = (period_ns, period_ns);
        }
        Policy::Ext { nice } => (wanted.sched_policy, wanted.sched_nice) = (7, nice),
    }
    set(wanted)
}

fn nothing() -> sched_attr {
    // SAFETY: it consists of integers only.
    unsafe { zeroed() }
}

fn set(mut wanted: sched_attr) -> io::Result<()> {
    wanted.size = size_of::<sched_attr>() as u32;
    // SAFETY: reads a structure of the size that it states, and concerns the calling thread.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Puts the calling thread before all others: what conducts a case must not wait for it. Threads
/// and processes that it starts begin with the default policy.
pub fn become_conductor() -> io::Result<()> {
    /// `SCHED_FLAG_RESET_ON_FORK`.
    const RESET: u64 = 1;
    set(sched_attr { sched_policy: 1, sched_priority: 50, sched_flags: RESET, ..nothing() })
}

/// Makes the calling thread's timers exact: by default they may be 50 µs late.
pub fn exact_timers() {
    // SAFETY: sets a number of the calling thread. It can't fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_usize) };
}

/// Keeps the calling thread on a CPU.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    stay_within(&[cpu])
}

/// Keeps the calling thread on some CPUs.
pub fn stay_within(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: all zero is a set without CPUs.
    let mut set: libc::cpu_set_t = unsafe { zeroed() };
    for cpu in cpus {
        // SAFETY: writes within the set, or nothing.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: reads the set, and concerns the calling thread.
    let done = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the CPU that the calling thread runs on.
pub fn cpu() -> usize {
    // SAFETY: returns a number.
    unsafe { libc::sched_getcpu() }.unsigned_abs() as usize
}

/// Returns the CPU time of the calling thread.
pub fn own_cpu_ns() -> u64 {
    // SAFETY: all zero is a time.
    let mut time: libc::timespec = unsafe { zeroed() };
    // SAFETY: writes one time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until a time of the monotonic clock.
pub fn sleep_until(at_ns: u64) {
    let time = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as i64,
        tv_nsec: (at_ns % 1_000_000_000) as i64,
    };
    // SAFETY: reads one time. A signal may end the sleep early; there are none here.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        );
    }
}

/// Uses the CPU until a time of the monotonic clock.
pub fn spin_until(at_ns: u64) {
    while now_ns() < at_ns {
        black_box(());
    }
}

/// Uses the CPU for so much CPU time.
pub fn work(ns: u64) {
    let until = own_cpu_ns() + ns;
    while own_cpu_ns() < until {
        black_box(());
    }
}

/// Uses the CPU until the flag is set. Returns the CPU time of that.
pub fn hog(stop: &AtomicBool) -> u64 {
    let before = own_cpu_ns();
    // Relaxed: the flag says nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        for turn in 0..1_000 {
            black_box(turn);
        }
    }
    own_cpu_ns() - before
}

/// The same, and tells the CPU time meanwhile.
pub fn hog_and_tell(ran: &AtomicU64, stop: &AtomicBool) {
    // Relaxed, both: they say nothing about other memory.
    while !stop.load(Ordering::Relaxed) {
        for turn in 0..10_000 {
            black_box(turn);
        }
        ran.store(own_cpu_ns(), Ordering::Relaxed);
    }
}

/// Lets the other threads run for so long, then sets the flag. The caller is of real time.
pub fn stop_after(time: Duration, stop: &AtomicBool) {
    std::thread::sleep(time);
    // Relaxed: as above.
    stop.store(true, Ordering::Relaxed);
}

/// Jain's index of fairness: 1 if all are equal, and the smaller the less they are.
pub fn jain(all: &[u64]) -> f64 {
    let all: Vec<_> = all.iter().map(|one| *one as f64).collect();
    let squares: f64 = all.iter().map(|one| one * one).sum();
    all.iter().sum::<f64>().powi(2) / squares / all.len() as f64
}
