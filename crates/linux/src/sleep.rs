//! The cost of a sleep on this machine, estimated from the wakes of sleepers.
//!
//! A waker leaves the time in the token of the thread that it wakes, and the woken thread computes
//! the elapsed time ([`crate::park`]): two readings of the time-stamp counter next to two system
//! calls. No more can be measured without a second thread, which a lock must not start. Each sample
//! moves the estimate by a step, whatever the size of the sample, so the estimate converges to the
//! lower quartile. Larger samples contain a wait for a CPU that ran another thread or was in a deep
//! sleep; spinning would save neither cost.
//!
//! Samples are wrong where the counters of two CPUs disagree, or when a wake is older than the
//! range of a stamp (seconds): the bounds keep the estimate usable.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use crate::tsc;

/// Less than the quickest wakes between two CPUs.
const LEAST_NS: u32 = 2_000;
/// The cost on virtual machines whose CPUs exit to wake each other. Longer samples come from a CPU
/// in a deep sleep, for which the waker does not pay.
const MOST_NS: u32 = 20_000;
/// The estimate before the first sample.
const GUESS_NS: u32 = MOST_NS;
/// A step is one part in this many of the estimate, which halves in about twenty sleeps.
const STEP: u32 = 32;
/// A step down is this many steps up, so that one sample in four is less than the estimate.
const DOWN: u32 = 3;

/// On its own cache line: written at each wake, and read at each spin.
#[repr(align(64))]
struct Estimate(AtomicU32);

/// 0 means not learned yet. Relaxed throughout: any value that it ever held is usable, and a step
/// that a race loses is one of many.
static COST_NS: Estimate = Estimate(AtomicU32::new(0));

/// See [`Hints::sleep_cost_ns`](antiphon_platform::Hints::sleep_cost_ns).
pub(crate) fn cost_ns() -> u32 {
    match COST_NS.0.load(Relaxed) {
        0 => GUESS_NS,
        ns => ns,
    }
}

/// Notes that a sleeper was awake `ticks` ticks after the call that woke it.
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
