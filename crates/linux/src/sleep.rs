//! The cost of a sleep on this machine: learned from the sleeps that end.
//!
//! A waker leaves the time in the token of the thread that it wakes, and the woken thread looks how
//! long ago that was ([`crate::park`]): two readings of the time-stamp counter beside two system
//! calls. That is all that can be measured without a second thread, which a lock has no business to
//! start. A sample moves the estimate by a step, whatever its size, so it comes to rest where a
//! quarter of the samples is less. The others contain a wait for a CPU that ran another thread or
//! had fallen into a deep sleep; neither is a cost that spinning would save.
//!
//! Counters of two CPUs that disagree spoil samples, and so does a wake that is longer ago than a
//! stamp counts, seconds: the bounds keep what comes of it usable.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use crate::tsc;

/// Less than the quickest wakes between two CPUs.
const LEAST_NS: u32 = 2_000;
/// The cost on virtual machines whose CPUs exit to wake each other. What takes longer is a CPU that
/// comes out of a deep sleep, which the waker does not pay for.
const MOST_NS: u32 = 20_000;
/// The estimate before the first sample.
const GUESS_NS: u32 = MOST_NS;
/// A step is this part of the estimate: half as much is learned in some twenty sleeps.
const STEP: u32 = 32;
/// A step down is this many steps up: one sample of four is to be less.
const DOWN: u32 = 3;

/// On a line of its own: written at each wake, and read at each spin.
#[repr(align(64))]
struct Estimate(AtomicU32);

/// 0 is not learned yet. Relaxed throughout: any value that it ever held is a good one, and a step
/// that is lost to another thread's is one of many.
static COST_NS: Estimate = Estimate(AtomicU32::new(0));

/// See [`Hints::sleep_cost_ns`](antiphon_platform::Hints::sleep_cost_ns).
pub(crate) fn cost_ns() -> u32 {
    match COST_NS.0.load(Relaxed) {
        0 => GUESS_NS,
        ns => ns,
    }
}

/// Notes that a sleeper was back `ticks` ticks after the call that woke it.
pub(crate) fn took(ticks: u64) {
    COST_NS.0.store(after(cost_ns(), ticks), Relaxed);
}

/// The estimate after a sample.
fn after(cost_ns: u32, ticks: u64) -> u32 {
    let step = cost_ns / STEP;
    let is_more = ticks > tsc::from_ns(cost_ns);
    let moved = if is_more { cost_ns + step } else { cost_ns - DOWN * step };
    moved.clamp(LEAST_NS, MOST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(samples_ns: impl Iterator<Item = u32>) -> u32 {
        samples_ns.fold(GUESS_NS, |cost_ns, ns| after(cost_ns, tsc::from_ns(ns)))
    }

    #[test]
    fn comes_to_rest_at_the_lower_quartile_whatever_the_largest_are() {
        let spread = |nth: u32| [5_000, 9_000, 14_000, 4_000_000][nth as usize % 4];
        let ns = learned((0..1_000).map(spread));
        assert!((4_000..9_900).contains(&ns), "{ns}");
    }

    #[test]
    fn stays_within_its_bounds() {
        assert_eq!(learned(core::iter::repeat_n(0, 500)), LEAST_NS);
        assert_eq!(learned(core::iter::repeat_n(u32::MAX, 500)), MOST_NS);
        let half = learned(core::iter::repeat_n(GUESS_NS / 3, 20));
        assert!(half <= GUESS_NS / 2, "{half}");
    }
}
