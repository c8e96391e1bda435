//! The time-stamp counter as a clock. Its rate is read from the processor, or measured like that of
//! the APIC's timer, with the interval timer that all machines have.
//!
//! Times are nanoseconds since the boot. The counters of all processors are assumed to be equal, as
//! on machines with an invariant counter.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::apic;
use super::cpu::{cpuid, inb, outb, tsc};

/// Nanoseconds per tick of the counter, and its ticks per nanosecond, both times 2^32.
static NS_PER_TICK: AtomicU64 = AtomicU64::new(1 << 32);
static TICKS_PER_NS: AtomicU64 = AtomicU64::new(1 << 32);
/// The timer's ticks per nanosecond, times 2^32.
static TIMER_PER_NS: AtomicU64 = AtomicU64::new(1 << 32);
static BOOT: AtomicU64 = AtomicU64::new(0);
static WALL_NS: AtomicU64 = AtomicU64::new(0);

const NS: u64 = 1_000_000_000;
/// The rate of the interval timer, in hertz.
const PIT_HZ: u64 = 1_193_182;
/// Length of a measurement, in ticks of the interval timer: about two milliseconds.
const PIT_TICKS: u64 = 2400;
const MEASUREMENTS: usize = 3;

/// Measures the rates. The APIC is set up, and interrupts are off.
pub fn set_up() {
    BOOT.store(tsc(), Relaxed);
    // A figure is too large only if the measuring code was delayed: the smallest is the best.
    let (mut ticks, mut timer) = (u64::MAX, u64::MAX);
    for _ in 0..MEASUREMENTS {
        let (one, other) = measure();
        (ticks, timer) = (ticks.min(one), timer.min(other));
    }
    let hz = told_hz().unwrap_or_else(|| ticks.max(1) * PIT_HZ / PIT_TICKS);
    let scaled = |of: u64, per: u64| ((u128::from(of) << 32) / u128::from(per)) as u64;
    NS_PER_TICK.store(scaled(NS, hz), Relaxed);
    TICKS_PER_NS.store(scaled(hz, NS), Relaxed);
    TIMER_PER_NS.store(scaled(timer.max(1) * PIT_HZ / PIT_TICKS, NS), Relaxed);
    WALL_NS.store(wall_ns(), Relaxed);
}

/// Returns the rate of the counter in hertz, if the processor reports it.
fn told_hz() -> Option<u64> {
    let ratio = cpuid(0x15, 0);
    let crystal = u64::from(ratio.ecx) * u64::from(ratio.ebx);
    crystal.checked_div(ratio.eax.into()).filter(|&hz| hz != 0)
}

/// Returns the ticks of the counter, and of the APIC's timer, in [`PIT_TICKS`] of the interval
/// timer.
fn measure() -> (u64, u64) {
    const CONTROL: u16 = 0x61;
    const OUT: u8 = 1 << 5;
    // SAFETY: channel 2 of the interval timer and its gate, which drive only the loudspeaker.
    unsafe {
        let gate = inb(CONTROL) & !3;
        outb(CONTROL, gate);
        // Channel 2, both bytes, counts down once.
        outb(0x43, 0xb0);
        outb(0x42, PIT_TICKS as u8);
        outb(0x42, (PIT_TICKS >> 8) as u8);
        if !apic::is_by_deadline() {
            apic::set_timer(0, u32::MAX);
        }
        outb(CONTROL, gate | 1);
        let began = tsc();
        // A machine without the timer must not hang here.
        for _ in 0..10_000_000 {
            if inb(CONTROL) & OUT != 0 {
                break;
            }
            core::hint::spin_loop();
        }
        let ticks = tsc() - began;
        let timer = u64::from(u32::MAX - apic::timer_left());
        apic::set_timer(0, 0);
        outb(CONTROL, gate);
        (ticks, timer)
    }
}

/// Returns the nanoseconds since the boot.
#[inline]
pub fn now_ns() -> u64 {
    ns(tsc() - BOOT.load(Relaxed))
}

/// Converts ticks of the counter to nanoseconds.
#[inline]
pub fn ns(ticks: u64) -> u64 {
    ((u128::from(ticks) * u128::from(NS_PER_TICK.load(Relaxed))) >> 32) as u64
}

/// Converts nanoseconds to ticks of the counter.
#[inline]
pub fn ticks(ns: u64) -> u64 {
    ((u128::from(ns) * u128::from(TICKS_PER_NS.load(Relaxed))) >> 32) as u64
}

/// Returns the nanoseconds since 1 January 1970, by the battery-backed clock at the boot.
pub fn now_wall_ns() -> u64 {
    WALL_NS.load(Relaxed) + now_ns()
}

/// Sets this processor's timer to interrupt it at that time; at once if it has passed, and never at
/// `u64::MAX`.
pub fn set_alarm(at_ns: u64) {
    if at_ns == u64::MAX {
        return apic::set_timer(0, 0);
    }
    let left_ns = at_ns.saturating_sub(now_ns()).max(1);
    let timer = (u128::from(left_ns) * u128::from(TIMER_PER_NS.load(Relaxed))) >> 32;
    // If the time is beyond the timer's range, it is set again when the timer has run out.
    let in_ticks = u32::try_from(timer).unwrap_or(u32::MAX).max(1);
    apic::set_timer(BOOT.load(Relaxed) + ticks(at_ns).max(1), in_ticks);
}

/// Spins for `ns` nanoseconds.
pub fn delay_ns(ns: u64) {
    let end = now_ns() + ns;
    while now_ns() < end {
        core::hint::spin_loop();
    }
}

/// Reads the battery-backed clock, in nanoseconds since 1970.
fn wall_ns() -> u64 {
    let read = |register: u8| {
        // SAFETY: these are the clock's index and data ports.
        unsafe {
            outb(0x70, register);
            inb(0x71)
        }
    };
    let time = || [9, 8, 7, 4, 2, 0].map(read);
    // Two equal readings: the clock was not being updated.
    let mut seen = time();
    for _ in 0..1000 {
        let again = time();
        if again == seen {
            break;
        }
        seen = again;
    }
    let binary = read(11) & 4 != 0;
    let number = |byte: u8| u64::from(if binary { byte } else { (byte >> 4) * 10 + (byte & 15) });
    let [year, month, day, hour, minute, second] = seen.map(number);
    let days = days_before(2000 + year, month.clamp(1, 12)) + day.saturating_sub(1);
    (((days * 24 + hour) * 60 + minute) * 60 + second) * NS
}

/// Returns the days from 1 January 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    // The clock has two digits of a year, up to 2099; until then each fourth year is a leap year.
    let years = year - 1970;
    let leaps = (years + 1) / 4;
    let this = u64::from(year.is_multiple_of(4) && month > 2);
    years * 365 + leaps + BEFORE[month as usize - 1] + this
}
