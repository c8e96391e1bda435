//! The figures of one thread of a repetition, and how it tells the time.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use antiphon_linux::ticks;

use super::{Order, WARM_UP};
use crate::bench::ticks::Ticks;
use crate::pinned::Switches;

/// The part of one thread. Empty where it has no part.
#[derive(Default)]
pub struct Part {
    pub latency_ns: Vec<f64>,
    pub sender_ns: Vec<f64>,
    pub sigma_ns: Vec<f64>,
    /// CPU time for its events.
    pub cpu_ns: f64,
    /// How often it slept for them.
    pub sleeps: u64,
    /// Events that it has received.
    pub events: u64,
    /// The number of events that were timed together.
    pub batch: usize,
}

/// Two lines of most machines' caches, so that a neighbour is not fetched along.
#[repr(align(128))]
#[derive(Default)]
pub struct Line<T>(pub T);

/// The counter, read after all that comes before and before all that comes after.
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
    // SAFETY: waits for earlier instructions, and touches nothing.
    unsafe {
        std::arch::asm!("lfence", options(nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("isb", options(nostack, preserves_flags));
    }
}

/// Nanoseconds from one stamp to another; less than 0 if the other CPU's counter is behind.
pub fn between(clock: Ticks, from: u64, to: u64) -> f64 {
    clock.to_ns(to.wrapping_sub(from) as i64 as f64)
}

/// Keeps the CPU for so long.
pub fn spin(clock: Ticks, ns: f64) {
    let begin = ticks();
    while between(clock, begin, ticks()) < ns {
        spin_loop();
    }
}

/// The CPU time and the sleeps of the calling thread.
pub struct Usage {
    cpu: Duration,
    sleeps: u64,
}

impl Usage {
    /// Up to now.
    pub fn now() -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is ours to write, and every Linux has the clock.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        let cpu = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        Self { cpu, sleeps: Switches::now().voluntary }
    }

    /// The part from this moment to now, for `events` events.
    pub fn part(self, events: u64) -> Part {
        let now = Self::now();
        let cpu_ns = (now.cpu - self.cpu).as_nanos() as f64;
        Part { cpu_ns, sleeps: now.sleeps - self.sleeps, events, ..Part::default() }
    }
}

/// The trials of a repetition, one after the other: first those that warm up. When the time is up
/// there is one more at most, so that there is one that counts.
pub struct Trials {
    made: usize,
    warm_up: usize,
    wanted: usize,
    /// The time when the repetition is over.
    pub end: Instant,
}

impl Trials {
    /// None was made.
    pub fn of(order: &Order) -> Self {
        let end = Instant::now() + Duration::from_secs_f64(order.seconds);
        Self { made: 0, warm_up: WARM_UP, wanted: order.trials, end }
    }
}

impl Iterator for Trials {
    /// Whether it counts.
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
