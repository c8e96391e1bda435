//! Mean times of a fiber's timed cycles, from which the cycles in between are estimated.
//!
//! ```text
//!   goes on    waits       may go on      goes on
//!     │   ran    │   waited    │    woken    │
//!     ▼──────────▼─────────────▼─────────────▼
//!     ▲──────────▲───────────────────────────▲
//!     │   ran    │          yielded          │
//!   goes on    yields                     goes on
//! ```

use antiphon_runtime::flight::LONG_NS;

/// Time between two timed cycles, in nanoseconds. Cycles longer than this are all timed.
pub(crate) const PERIOD_NS: u64 = 32_000;

/// Running mean of the time of one part of the cycles, in nanoseconds; 0 if it is not known.
#[derive(Clone, Copy, Default)]
struct Mean(u64);

/// The mean times of the parts of the timed cycles.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cycles {
    ran: Mean,
    waited: Mean,
    woken: Mean,
    yielded: Mean,
}

/// The number of suspensions of a stretch that were not timed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Skipped {
    pub(crate) waits: u32,
    pub(crate) yields: u32,
}

/// The times of a fiber in a stretch other than running, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) waiting_ns: u64,
    pub(crate) runnable_ns: u64,
    /// The part of these times in which one other task occupied the thread.
    pub(crate) hogged_ns: u64,
}

impl Mean {
    /// Adds a time, with a weight of one eighth.
    fn add(&mut self, ns: u64) {
        let before = if self.0 == 0 { ns } else { self.0 };
        self.0 = ((7 * before + ns) / 8).max(1);
    }
}

impl Cycles {
    /// Returns whether a cycle with that kind of suspension (`waits`, otherwise a yield) was timed.
    pub(crate) fn knows(&self, waits: bool) -> bool {
        (if waits { self.waited } else { self.yielded }).0 > 0
    }

    /// Records a run of `ns` between two suspensions.
    pub(crate) fn ran(&mut self, ns: u64) {
        if ns <= PERIOD_NS {
            self.ran.add(ns);
        }
    }

    /// Records a suspension of `away_ns`; at its end the fiber was runnable for `runnable_ns`.
    pub(crate) fn away(&mut self, waits: bool, away_ns: u64, runnable_ns: u64) {
        if away_ns > PERIOD_NS {
            return;
        }
        if waits {
            self.waited.add(away_ns.saturating_sub(runnable_ns));
            self.woken.add(runnable_ns);
        } else {
            self.yielded.add(away_ns);
        }
    }

    /// Splits the time of a stretch that had `runs` runs and these suspensions.
    ///
    /// Each suspension counts as long as the timed ones, and the rest is running time. If there is
    /// too little time for that, all parts were shorter, and are scaled in proportion: a look takes
    /// time. The split is also in proportion if the stretch is long, because no look has shown how
    /// its time was spent.
    pub(crate) fn split(&self, passed_ns: u64, runs: u32, skipped: Skipped) -> Parts {
        let (waits, yields) = (u64::from(skipped.waits), u64::from(skipped.yields));
        let waited_ns = waits * self.waited.0;
        let ready_ns = waits * self.woken.0 + yields * self.yielded.0;
        let away_ns = waited_ns + ready_ns;
        let whole_ns = away_ns + u64::from(runs) * self.ran.0;
        let is_scaled = passed_ns < whole_ns || passed_ns > LONG_NS && away_ns > 0;
        let scaled = |ns: u64| {
            let ns = u128::from(ns) * u128::from(passed_ns) / u128::from(whole_ns);
            u64::try_from(ns).unwrap_or(passed_ns)
        };
        let told = |ns: u64| if is_scaled { scaled(ns) } else { ns };
        Parts { waiting_ns: told(waited_ns), runnable_ns: told(ready_ns), hogged_ns: 0 }
    }
}

impl Skipped {
    /// Counts one more suspension.
    pub(crate) fn add(&mut self, waits: bool) {
        *(if waits { &mut self.waits } else { &mut self.yields }) += 1;
    }

    /// Returns the number of suspensions.
    pub(crate) fn all(&self) -> u32 {
        self.waits + self.yields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles() -> Cycles {
        let mut cycles = Cycles::default();
        cycles.ran(100);
        cycles.away(true, 300, 100);
        cycles.away(false, 400, 400);
        cycles
    }

    #[test]
    fn a_stretch_is_as_the_cycles_that_were_timed() {
        let skipped = Skipped { waits: 10, yields: 5 };
        let parts = cycles().split(1_600 + 5_000, 16, skipped);
        let as_timed = Parts { waiting_ns: 2_000, runnable_ns: 3_000, hogged_ns: 0 };
        assert_eq!(parts, as_timed);
        // The rest is running time.
        assert_eq!(cycles().split(66_000, 16, skipped), as_timed);
        let half = Parts { waiting_ns: 1_000, runnable_ns: 1_500, hogged_ns: 0 };
        assert_eq!(cycles().split(3_300, 16, skipped), half);
        let long = Parts { waiting_ns: 2_000_000, runnable_ns: 3_000_000, hogged_ns: 0 };
        assert_eq!(cycles().split(6_600_000, 16, skipped), long);
    }

    #[test]
    fn parts_are_no_longer_than_the_stretch() {
        for passed_ns in [0, 1, 99, 4_999, 250_001, u64::MAX] {
            let parts = cycles().split(passed_ns, 1, Skipped { waits: 256, yields: 256 });
            assert!(parts.waiting_ns + parts.runnable_ns <= passed_ns, "{passed_ns} {parts:?}");
        }
        assert_eq!(cycles().split(1_000_000, 1, Skipped::default()), Parts::default());
        let nothing = Cycles::default().split(1_000_000, 3, Skipped { waits: 2, yields: 0 });
        assert_eq!(nothing, Parts::default());
    }

    #[test]
    fn long_ones_say_nothing_of_quick_ones() {
        let mut cycles = cycles();
        let before = cycles.split(6_600, 16, Skipped { waits: 10, yields: 5 });
        cycles.ran(PERIOD_NS + 1);
        cycles.away(true, 20_000_000, 10);
        assert_eq!(cycles.split(6_600, 16, Skipped { waits: 10, yields: 5 }), before);
        let mut cycles = Cycles::default();
        cycles.away(true, 20_000_000, 10);
        assert!(!cycles.knows(true));
        cycles.away(true, 0, 0);
        assert!(cycles.knows(true) && !cycles.knows(false));
    }
}
