//! Detection of changes of the CPUs' counter after its rate was measured.
//!
//! A kernel may find later that it can't keep its time by the counter. A hypervisor may migrate its
//! guest to a host whose counter has another value or another rate, and a machine that was
//! suspended may restart its counter. Programs are not notified of any of these. But each shows in
//! comparison with the monotonic clock, which the kernel keeps correct throughout.

use core::fmt;

use crate::counter::{self, ClockSource, source};
use crate::moment::{Moment, measure};

/// The rate of the counter, and a paired reading of the counter and the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    begun: Moment,
    /// The measured ticks, the number of these that are in doubt, and the measured nanoseconds.
    ticks: u64,
    doubt: u64,
    ns: u64,
}

/// The change of a counter that was detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The kernel no longer keeps its time by the counter.
    Source,
    /// The counter has jumped, or has another rate.
    Pace,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Source => {
                "the kernel does not keep its time by the CPUs' counters any more (see dmesg): \
                 programs that are started now use the monotonic clock"
            }
            Self::Pace => {
                "the CPUs' counters have jumped, or go at another rate: the machine was suspended, \
                 or moved to another host; stamps from before can't be compared with later ones"
            }
        })
    }
}

/// The share of the time after the measurement by which the two clocks may differ: the monotonic
/// clock is slewed by at most half of that.
const SLEW: u64 = 1_000;
/// The difference of the two clocks that is always tolerated, however short the time is.
const SLACK_NS: u64 = 1_000_000;

impl Pace {
    /// Counts ticks over at least `least_ns` nanoseconds, and keeps the CPU busy during that time.
    /// Returns `None` if the CPU is lost too often, like [`measure_ticks`](crate::measure_ticks).
    #[must_use]
    pub fn measure(least_ns: u64) -> Option<Self> {
        let (begun, end) = measure(least_ns, Moment::now)?;
        let (ticks, ns) = begun.until(&end)?;
        Some(Self { begun, ticks, doubt: begun.doubt + end.doubt, ns })
    }

    /// The rate of the counter, in ticks per nanosecond.
    #[must_use]
    pub fn ticks_per_ns(&self) -> f64 {
        self.ticks as f64 / self.ns as f64
    }

    /// Checks whether the counter has kept this rate so far. Reads a file of `/sys` and both
    /// clocks. Does not detect deviations of less than a millisecond, or less than a thousandth of
    /// the elapsed time.
    ///
    /// # Errors
    ///
    /// Returns the change, if there was one.
    pub fn verify(&self) -> Result<(), Changed> {
        match source() {
            ClockSource::Monotonic(_) => Ok(()),
            ClockSource::Counter { .. } if counter::ask() != source() => Err(Changed::Source),
            ClockSource::Counter { .. } if self.is_kept(&Moment::now()) => Ok(()),
            ClockSource::Counter { .. } => Err(Changed::Pace),
        }
    }

    fn is_kept(&self, now: &Moment) -> bool {
        let Some(ns) = now.ns.checked_sub(self.begun.ns) else { return false };
        let [ticks, doubt] = [self.ticks, self.doubt].map(u128::from);
        let of = |ns: u64| u128::from(ns) * ticks / u128::from(self.ns.max(1));
        let due = of(ns);
        // A counter that went back appears to be far ahead.
        let seen = u128::from(now.ticks.wrapping_sub(self.begun.ticks));
        let unsure = u128::from(self.begun.doubt) + u128::from(now.doubt);
        let slack = of(SLACK_NS) + due / u128::from(SLEW) + due * doubt / ticks.max(1);
        seen.abs_diff(due) <= slack + unsure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three ticks per nanosecond, measured over a millisecond.
    const PACE: Pace = Pace {
        begun: Moment { ticks: 1 << 40, doubt: 50, ns: 1 << 30 },
        ticks: 3_000_000,
        doubt: 100,
        ns: 1_000_000,
    };

    fn later(ns: u64, ticks: u64) -> Moment {
        let Moment { ticks: first, ns: begun, .. } = PACE.begun;
        Moment { ticks: first.wrapping_add(ticks), doubt: 50, ns: begun + ns }
    }

    #[test]
    fn a_counter_that_goes_on_has_kept_its_pace() {
        for s in [0, 1, 60, 3_600, 86_400 * 365] {
            let ns = s * 1_000_000_000;
            assert!(PACE.is_kept(&later(ns, 3 * ns)));
            assert!(PACE.is_kept(&later(ns, 3 * ns + 3 * ns / 2_000)), "slewed for {s} s");
        }
    }

    #[test]
    fn a_jump_and_another_rate_are_seen() {
        let hour = 3_600_000_000_000;
        assert!(!PACE.is_kept(&later(hour, 5 * hour / 2)));
        assert!(!PACE.is_kept(&later(1_000_000_000, 3_100_000_000)));
        assert!(!PACE.is_kept(&later(1_000_000_000, 0)), "begun anew where it was");
        assert!(!PACE.is_kept(&later(1_000_000_000, 0_u64.wrapping_sub(1 << 40))));
        assert!(!PACE.is_kept(&Moment { ns: 0, ..PACE.begun }), "the clock went back");
    }

    #[test]
    fn this_machine_keeps_its_pace() {
        let pace = (0..5).find_map(|_| Pace::measure(2_000_000));
        assert_eq!(pace.map(|pace| pace.verify()), Some(Ok(())));
    }

    #[test]
    fn what_has_changed_is_said() {
        for changed in [Changed::Source, Changed::Pace] {
            let said = changed.to_string();
            assert!(said.contains(':') && !said.contains("  "), "{said}");
        }
    }
}
