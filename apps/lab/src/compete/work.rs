//! Work that takes a known time of an unshared CPU, and the clock.

use std::hint::black_box;
use std::mem::MaybeUninit;

use antiphon_linux::Linux;
use antiphon_platform::{Clock, Clocks as _};
use serde::{Deserialize, Serialize};

/// Work that a player decodes at a time; it gives the CPU away only between two of these.
pub const CHUNK_NS: u64 = 250_000;
/// CPU time to show a frame.
pub const SHOW_NS: u64 = 50_000;
/// Length and number of trials of the calibration; the fastest counts.
const TRIAL_NS: u64 = 2_000_000;
const TRIALS: usize = 20;

/// Returns the time of the monotonic clock, in nanoseconds.
pub fn now_ns() -> u64 {
    Linux::now(Clock::Monotonic)
}

/// Converts a time of the monotonic clock to the kernel's format.
pub fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

/// Sleeps until this time, in spite of signals.
pub fn sleep_until(at_ns: u64) {
    let at = timespec(at_ns);
    let sleep = || {
        let none = std::ptr::null_mut();
        // SAFETY: `at` is a local variable, and nothing is written.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const at, none)
        }
    };
    while sleep() == libc::EINTR {}
}

/// Returns the time of a CPU clock, in nanoseconds; `None` if the clock no longer exists.
pub fn cpu_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is a local variable.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has succeeded, so it has written the time.
    let time = unsafe { time.assume_init() };
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Iterations of a loop per millisecond of this machine's CPU. It is the same for all programs that
/// compete, so that their work is comparable, and does not shrink when the CPU is taken away
/// meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    turns_per_ms: u64,
}

impl Pace {
    /// Measures the pace; takes 40 ms of CPU time.
    pub fn calibrate() -> Self {
        let mut turns = 10_000;
        while spent_ns(turns) < TRIAL_NS {
            turns *= 2;
        }
        let fastest = (0..TRIALS).map(|_| spent_ns(turns)).min().unwrap_or(TRIAL_NS);
        Self { turns_per_ms: (turns * 1_000_000 / fastest.max(1)).max(1) }
    }

    /// Works for `ns` nanoseconds, if the CPU is not taken away.
    pub fn burn(self, ns: u64) {
        turn(self.turns_per_ms * ns / 1_000_000);
    }
}

/// Returns the CPU time of `turns` iterations, in nanoseconds.
fn spent_ns(turns: u64) -> u64 {
    let cpu = || cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_else(now_ns);
    let before = cpu();
    turn(turns);
    cpu().saturating_sub(before).max(1)
}

fn turn(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_work_takes_longer() {
        let pace = Pace::calibrate();
        let cpu = || cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID).expect("a clock of this thread");
        let spent = |ns| {
            let before = cpu();
            pace.burn(ns);
            cpu() - before
        };
        let least = |ns| (0..5).map(|_| spent(ns)).min();
        assert!(least(200_000) < least(2_000_000));
    }

    #[test]
    fn nobody_is_up_too_early() {
        let at_ns = now_ns() + 1_000_000;
        sleep_until(at_ns);
        assert!(now_ns() >= at_ns);
        sleep_until(0);
    }
}
