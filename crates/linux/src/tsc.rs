//! The time-stamp counter: a clock cheap enough to read between two loads of a word.
//!
//! x86-64 reads `rdtsc`, AArch64 `cntvct_el0`; other machines fall back to the monotonic clock.
//! Only differences are used, and a difference that comes out negative (two cores whose counters
//! disagree) counts as none.
//!
//! x86-64 does not report the rate of its counter reliably, least of all under a hypervisor;
//! AArch64 does. So the rate is first a guess, and then measured by reading both clocks twice, with
//! no hook at start. A reading during which the thread loses its CPU is rejected ([`Moment`]):
//!
//! | state | source of the rate |
//! |---|---|
//! | `UNSEEN` | a guess: 3 ticks per ns on x86-64, the processor's value on AArch64 |
//! | `ANCHORING` | a guess; one thread is writing the anchor |
//! | `ANCHORED` | measured from the anchor to the last [`refine`], once that is 1 ms or more |
//! | `FINAL` | measured over 100 ms or more, and never changed again |
//!
//! The guess is wrong by at most a factor of three, and so is a spin in the first millisecond.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use antiphon_platform::Clock;

use crate::clock;
use crate::moment::Moment;

const UNSEEN: u32 = 0;
const ANCHORING: u32 = 1;
const ANCHORED: u32 = 2;
const FINAL: u32 = 3;

/// The rate is in ticks per 2^16 ns.
const RATE_SHIFT: u32 = 16;

static STATE: AtomicU32 = AtomicU32::new(UNSEEN);
static ANCHOR_TICKS: AtomicU64 = AtomicU64::new(0);
static ANCHOR_DOUBT: AtomicU64 = AtomicU64::new(0);
static ANCHOR_NS: AtomicU64 = AtomicU64::new(0);
/// 0 means not measured yet. Relaxed throughout: any value that it ever held is a usable rate.
static RATE: AtomicU64 = AtomicU64::new(0);

/// Whether the kernel may forbid some thread to read the counter.
static FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// Stops all reading of the CPU's counter and of clocks derived from it, for good: threads will be
/// killed for that (`PR_SET_TSC`, as strict filters use it).
pub fn forbid_counter() {
    clock::ask_kernel();
    // Relaxed: only the thread that calls this and the threads that it makes depend on the flag.
    FORBIDDEN.store(true, Relaxed);
}

#[cold]
#[inline(never)]
fn without_counter() -> u64 {
    clock::now(Clock::Monotonic)
}

pub use counter::ticks;
pub(crate) use counter::ticks_in_order;

#[cfg(target_arch = "x86_64")]
mod counter {
    use super::RATE_SHIFT;

    /// The time-stamp counter, in ticks. The rate depends on the machine, and CPUs may disagree.
    #[inline]
    #[must_use]
    pub fn ticks() -> u64 {
        if super::FORBIDDEN.load(super::Relaxed) {
            return super::without_counter();
        }
        // SAFETY: every x86-64 has the instruction, and Linux lets user code run it unless that was
        // disabled (`PR_SET_TSC`).
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Like [`ticks`], but read after all earlier loads and read-modify-writes of the program are
    /// done, and before any later access begins. [`crate::counter`] cites the manuals.
    #[inline]
    pub(crate) fn ticks_in_order() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: as in `ticks`; the fences change nothing. Without `nomem`, the compiler does not
        // move other accesses across.
        unsafe {
            core::arch::asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high,
                options(nostack, preserves_flags));
        }
        high << 32 | low
    }

    pub(super) fn guess() -> u64 {
        3 << RATE_SHIFT
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    use super::RATE_SHIFT;

    /// The time-stamp counter, in ticks. The rate depends on the machine, and CPUs may disagree.
    #[inline]
    #[must_use]
    pub fn ticks() -> u64 {
        let ticks: u64;
        // SAFETY: reads a register that Linux makes readable to user code.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
        }
        ticks
    }

    /// Like [`ticks`], but read after all earlier accesses of the program are done, and before any
    /// later access begins. [`crate::counter`] explains the instructions.
    #[inline]
    pub(crate) fn ticks_in_order() -> u64 {
        let ticks: u64;
        // SAFETY: as in `ticks`; the barriers change nothing. Without `nomem`, the compiler does
        // not move other accesses across.
        unsafe {
            core::arch::asm!("dsb ish", "isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks,
                options(nostack, preserves_flags));
        }
        ticks
    }

    pub(super) fn guess() -> u64 {
        let hertz: u64;
        // SAFETY: reads a register that Linux makes readable to user code.
        unsafe {
            core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, pure));
        }
        ((hertz << RATE_SHIFT) / 1_000_000_000).max(1)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod counter {
    use super::RATE_SHIFT;

    /// The monotonic clock, in nanoseconds: no counter is known for this machine.
    #[must_use]
    pub fn ticks() -> u64 {
        crate::clock::now(antiphon_platform::Clock::Monotonic)
    }

    /// Like [`ticks`]; full fences on both sides order other accesses.
    pub(crate) fn ticks_in_order() -> u64 {
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        let ticks = ticks();
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        ticks
    }

    pub(super) fn guess() -> u64 {
        1 << RATE_SHIFT
    }
}

/// Ticks from `earlier` to `later`; 0 if the counter has gone back.
#[inline]
pub(crate) fn since(earlier: u64, later: u64) -> u64 {
    let ticks = later.wrapping_sub(earlier);
    if ticks > u64::MAX / 2 { 0 } else { ticks }
}

/// Converts nanoseconds to ticks.
#[inline]
pub(crate) fn from_ns(ns: u32) -> u64 {
    (u64::from(ns) * rate()) >> RATE_SHIFT
}

/// Converts ticks to nanoseconds.
#[cfg(test)]
fn to_ns(ticks: u64) -> u64 {
    ((u128::from(ticks) << RATE_SHIFT) / u128::from(rate())) as u64
}

#[inline]
fn rate() -> u64 {
    match RATE.load(Relaxed) {
        0 => counter::guess(),
        rate => rate,
    }
}

/// Improves the rate, unless it is `FINAL`. Until then, reads the monotonic clock.
#[inline]
pub(crate) fn refine() {
    if STATE.load(Relaxed) != FINAL {
        refine_slowly();
    }
}

#[cold]
fn refine_slowly() {
    // Acquire: pairs with the release of the thread that wrote the anchor.
    match STATE.load(Acquire) {
        UNSEEN => drop_anchor(),
        ANCHORED => {
            let (anchor, now) = (anchor(), Moment::now());
            let ns = now.ns.saturating_sub(anchor.ns);
            match measured(&anchor, &now) {
                Some(rate) => {
                    RATE.store(rate, Relaxed);
                    if ns >= 100_000_000 {
                        STATE.store(FINAL, Relaxed);
                    }
                }
                // Drops a bad anchor, or a good one because of a bad reading; another spin writes a
                // new one.
                None if ns >= 100_000_000 => STATE.store(UNSEEN, Relaxed),
                None => {}
            }
        }
        // Another thread is anchoring, or the rate is final. A child forked during `ANCHORING`
        // stays in that state, with the guess.
        _ => {}
    }
}

fn drop_anchor() {
    if STATE.compare_exchange(UNSEEN, ANCHORING, Relaxed, Relaxed).is_err() {
        return;
    }
    let anchor = Moment::now();
    ANCHOR_TICKS.store(anchor.ticks, Relaxed);
    ANCHOR_DOUBT.store(anchor.doubt, Relaxed);
    ANCHOR_NS.store(anchor.ns, Relaxed);
    // Release: publishes the anchor; pairs with the acquire in `refine_slowly`.
    STATE.store(ANCHORED, Release);
}

/// The anchor; valid once the state is `ANCHORED`.
fn anchor() -> Moment {
    Moment {
        ticks: ANCHOR_TICKS.load(Relaxed),
        doubt: ANCHOR_DOUBT.load(Relaxed),
        ns: ANCHOR_NS.load(Relaxed),
    }
}

/// The rate, if both moments are exact enough and far enough apart, and the rate is plausible:
/// across a suspend the counter may have run on without the clock, or restarted.
fn measured(anchor: &Moment, now: &Moment) -> Option<u64> {
    let (ticks, ns) = anchor.until(now)?;
    if ns < 1_000_000 {
        return None;
    }
    let rate = u64::try_from((u128::from(ticks) << RATE_SHIFT) / u128::from(ns)).ok()?;
    let guess = counter::guess();
    (guess / 8..=guess * 8).contains(&rate).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn converts_there_and_back() {
        refine();
        std::thread::sleep(Duration::from_millis(3));
        refine();
        let begin = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(20));
        let seen = to_ns(since(begin.1, ticks()));
        let really = u64::try_from(begin.0.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Bounds, not exact times: whatever the load, the two clocks agree within a factor of two.
        assert!(seen > really / 2 && seen < really * 2, "{seen} ns for {really} ns");
    }

    #[test]
    fn a_counter_that_goes_back_has_not_moved() {
        assert_eq!(since(100, 90), 0);
        assert_eq!(since(90, 100), 10);
        assert_eq!(since(u64::MAX - 1, 1), 3);
    }

    #[test]
    fn a_rate_needs_a_millisecond_and_a_counter_that_ticks() {
        let begin = Moment { ticks: 1_000, doubt: 1, ns: 1_000 };
        let after = |ticks: u64, ns: u64| Moment { ticks: 1_000 + ticks, doubt: 1, ns: 1_000 + ns };
        let guess = counter::guess();
        let ticks = (2_000_000 * guess) >> RATE_SHIFT;
        assert_eq!(measured(&begin, &after(ticks / 4, 500_000)), None);
        assert_eq!(measured(&begin, &after(0, 5_000_000)), None);
        let rate = measured(&begin, &after(ticks, 2_000_000));
        assert!(rate.is_some_and(|rate| rate.abs_diff(guess) <= guess / 8));
        // A minute awake and eight hours asleep.
        assert_eq!(measured(&begin, &after(480 * ticks, 2_000_000)), None);
        // The CPU was lost between the readings of the two clocks, at the anchor or now.
        let unsure = Moment { doubt: ticks / 2, ..after(ticks, 2_000_000) };
        assert_eq!(measured(&begin, &unsure), None);
        assert_eq!(measured(&Moment { doubt: ticks / 2, ..begin }, &after(ticks, 2_000_000)), None);
    }
}
