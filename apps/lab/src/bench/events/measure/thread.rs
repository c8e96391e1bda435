//! The figures of one thread of a repetition, and the clock that times it.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use antiphon_linux::ticks;

use super::{Order, WARM_UP};
use crate::compete::work::cpu_ns;
use crate::pinned::Switches;
use crate::ticks::Ticks;

/// The figures of one thread; fields that don't apply to it are empty.
#[derive(Default)]
pub struct Part {
    pub latency_ns: Vec<f64>,
    pub sender_ns: Vec<f64>,
    pub sigma_ns: Vec<f64>,
    /// CPU time for its events.
    pub cpu_ns: f64,
    /// Number of times it slept for its events.
    pub sleeps: u64,
    /// Number of events that it has received.
    pub events: u64,
    /// Number of events that were timed together.
    pub batch: usize,
}

/// Two cache lines of most machines, so that the neighbouring line is not prefetched.
#[repr(align(128))]
#[derive(Default)]
pub struct Line<T>(pub T);

/// Reads the counter after all earlier and before all later instructions.
#[inline]
pub fn stamp() -> u64 {
    fence();
    let now = ticks();
    fence();
    now
}

#[inline]
fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `lfence` waits for earlier instructions and accesses no memory.
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: `isb` waits for earlier instructions and accesses no memory.
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    }
}

/// Nanoseconds from one stamp to another; negative if the other CPU's counter is behind.
pub fn between(clock: Ticks, from: u64, to: u64) -> f64 {
    clock.to_ns(to.wrapping_sub(from) as i64 as f64)
}

/// Spins for `ns` nanoseconds.
pub fn spin(clock: Ticks, ns: f64) {
    let begin = ticks();
    while between(clock, begin, ticks()) < ns {
        spin_loop();
    }
}

/// The CPU time and the sleeps of the calling thread.
pub struct Usage {
    cpu_ns: u64,
    sleeps: u64,
}

impl Usage {
    /// Returns the usage up to now.
    pub fn now() -> Self {
        let cpu_ns = cpu_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
        Self { cpu_ns, sleeps: Switches::now().voluntary }
    }

    /// Returns the usage from this moment to now, for `events` events.
    pub fn part(self, events: u64) -> Part {
        let now = Self::now();
        let cpu_ns = (now.cpu_ns - self.cpu_ns) as f64;
        Part { cpu_ns, sleeps: now.sleeps - self.sleeps, events, ..Part::default() }
    }
}

/// The trials of a repetition in order, warm-up first. Once the time is up, at most one more
/// follows, so that at least one trial counts.
pub struct Trials {
    made: usize,
    warm_up: usize,
    wanted: usize,
    /// Time at which the repetition ends.
    pub end: Instant,
}

impl Trials {
    /// Before the first trial.
    pub fn of(order: &Order) -> Self {
        let end = Instant::now() + Duration::from_secs_f64(order.seconds);
        Self { made: 0, warm_up: WARM_UP, wanted: order.trials, end }
    }
}

impl Iterator for Trials {
    /// Whether the trial counts.
    type Item = bool;

    fn next(&mut self) -> Option<bool> {
        let late = Instant::now() >= self.end;
        if self.warm_up > 0 && !late {
            self.warm_up -= 1;
            return Some(false);
        }
        let next = self.made == 0 || self.made < self.wanted && !late;
        self.made += 1;
        next.then_some(true)
    }
}
