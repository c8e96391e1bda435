//! A clock for holds, which are timed at every acquisition: the processor's counter where it is
//! known to tick evenly, otherwise the monotonic clock.
//!
//! The counter's rate is measured once, when a recording of everything begins, against the
//! monotonic clock over half a millisecond. Reading both together has an error of some 50 ns, so
//! the rate is exact to one part in five thousand. A reading during which the thread lost its CPU
//! is discarded, so the rate is exact to one part in a hundred on any machine; where no reading is
//! good, holds are timed by the monotonic clock.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_linux::{Linux, measure_ticks};
use antiphon_platform::{Clock, Clocks as _};
use antiphon_record::Writer;

/// Shortest time for which the counter is measured.
const SPAN_NS: u64 = 500_000;

/// Nanoseconds in 2^32 ticks; 0 if ticks are nanoseconds of the monotonic clock.
static RATE: AtomicU64 = AtomicU64::new(0);

/// The current time, in ticks.
#[inline]
pub(crate) fn now() -> u64 {
    match RATE.load(Relaxed) {
        0 => Linux::now(Clock::Monotonic),
        _ => antiphon_linux::ticks(),
    }
}

/// Nanoseconds since `earlier`; 0 if the counter of another core is behind.
#[inline]
pub(crate) fn ns_since(earlier: u64) -> u64 {
    let ticks = now().wrapping_sub(earlier);
    if ticks > u64::MAX / 2 {
        return 0;
    }
    to_ns(ticks)
}

/// A span of ticks in nanoseconds.
#[inline]
pub(crate) fn to_ns(ticks: u64) -> u64 {
    match RATE.load(Relaxed) {
        0 => ticks,
        rate => ((u128::from(ticks) * u128::from(rate)) >> 32) as u64,
    }
}

/// Nanoseconds in 2^32 ticks where ticks are nanoseconds.
const NANOSECONDS: u64 = 1 << 32;

/// Measures the counter, if it ticks evenly, and no process that writes to the same recording has
/// done so: their times are compared.
pub(crate) fn calibrate(writer: Writer) {
    match writer.rate() {
        0 => {
            measure();
            let rate = RATE.load(Relaxed);
            writer.set_rate(if rate == 0 { NANOSECONDS } else { rate }, now(), look());
        }
        NANOSECONDS => {}
        rate => RATE.store(rate, Relaxed),
    }
}

/// The cost of reading the clock, in 1024ths of a tick: the minimum of some rounds, because other
/// threads may have had the CPU in the rest.
fn look() -> u64 {
    const ROUNDS: u32 = 32;
    const LOOKS: u64 = 16;
    let round = |_| {
        let since = now();
        let mut last = since;
        for _ in 0..LOOKS {
            last = now();
        }
        (last.saturating_sub(since) << 10) / LOOKS
    };
    (0..ROUNDS).map(round).min().unwrap_or(0)
}

fn measure() {
    if !even() {
        return;
    }
    let seen = measure_ticks(SPAN_NS);
    let rate = seen.and_then(|(ticks, ns)| (u128::from(ns) << 32).checked_div(u128::from(ticks)));
    RATE.store(rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(0), Relaxed);
}

/// Returns whether the counter ticks at a constant rate in every state of the processor.
#[cfg(target_arch = "x86_64")]
fn even() -> bool {
    const INVARIANT: u32 = 1 << 8;
    let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    highest >= 0x8000_0007 && core::arch::x86_64::__cpuid(0x8000_0007).edx & INVARIANT != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn even() -> bool {
    false
}
