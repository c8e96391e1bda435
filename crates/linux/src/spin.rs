//! How long to spin: a budget in nanoseconds, cut short when spinning is no use.
//!
//! Between two looks at its word a spinning waiter pauses and reads the time-stamp counter. Two
//! readings should be tens of nanoseconds apart; a gap of more than [`GAP_NS`] means that the
//! waiter lost its CPU in between. Then another thread wants to run, perhaps the one that we wait
//! for, so the spin ends whatever is left of its budget, and [`crate::crowd`] hears of it.
//!
//! A CPU that can rest until a line is written to ([`crate::umwait`]) does so in place of pausing,
//! but not at first, as it takes longer to be back than from a pause, nor where looks are to become
//! fewer: what such a word's owner writes ends each rest.

use core::hint::spin_loop;

use antiphon_platform::Budget;

use crate::{crowd, futex, pretend, tsc, umwait};

/// A gap between two looks that an interrupt or a kernel thread does not explain; [`crate::crowd`]
/// has the figures.
const GAP_NS: u32 = 500_000;
/// Pauses between two looks. One is 10 to 50 ns, depending on the processor.
const PAUSES: u32 = 2;
/// The longest rest between two looks: no gap yet.
const REST_NS: u32 = 100_000;
/// The time below which pausing is as good: several times what it takes to come back from a rest.
const AWAKE_NS: u32 = 1_000;
const _: () = assert!(REST_NS < GAP_NS / 2);

/// A spin in progress.
#[derive(Debug)]
pub(crate) struct Spin {
    begin: u64,
    last: u64,
    budget: u64,
    gap: u64,
    /// The first gap between two looks, if they are to become fewer.
    backoff: Option<u64>,
    /// How long a rest is at most, if there are rests, and when the first begins.
    rest: Option<(u64, u64)>,
}

impl Spin {
    /// Starts the clock.
    #[cold]
    pub(crate) fn new(budget: Budget) -> Self {
        tsc::refine();
        let rests = budget.backoff.is_none() && umwait::supported();
        let now = tsc::ticks();
        Self {
            begin: now,
            last: now,
            budget: tsc::from_ns(budget.ns),
            gap: tsc::from_ns(GAP_NS),
            backoff: budget.backoff.map(tsc::from_ns),
            rest: rests.then(|| (tsc::from_ns(REST_NS), now.wrapping_add(tsc::from_ns(AWAKE_NS)))),
        }
    }

    /// Call it before each load of the word.
    #[inline]
    pub(crate) fn watch<W>(&self, word: &W) {
        #[cfg(target_arch = "x86_64")]
        if self.rest.is_some() {
            // SAFETY: there are rests where they are supported; the word is borrowed.
            unsafe { umwait::watch(core::ptr::from_ref(word).cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = word;
    }

    /// The least that passes between two looks.
    #[inline]
    fn relax(&self) {
        if pretend::is_on() {
            // There are more spinning threads than CPUs, then.
            return futex::yield_now();
        }
        #[cfg(target_arch = "x86_64")]
        if let Some((rest, first)) = self.rest
            && self.last >= first
        {
            let end = self.begin.wrapping_add(self.budget);
            // SAFETY: as in `watch`.
            return unsafe { umwait::rest(end.min(self.last.wrapping_add(rest))) };
        }
        for _ in 0..PAUSES {
            spin_loop();
        }
    }

    /// Reads the clock.
    #[inline]
    fn look(&self) -> u64 {
        if pretend::is_on() {
            // Whatever other programs do meanwhile.
            return self.last.wrapping_add(tsc::from_ns(pretend::LOOK_NS));
        }
        tsc::ticks()
    }

    /// Pauses. `false` if the next look is to be the last.
    #[inline]
    pub(crate) fn pause(&mut self) -> bool {
        // Backing off: as long until the next look as all looks have taken so far.
        let until = self.backoff.map_or(0, |first| tsc::since(self.begin, self.last).max(first));
        let looked = self.last;
        loop {
            self.relax();
            let now = self.look();
            let gap = tsc::since(self.last, now);
            self.last = now;
            if gap > self.gap {
                crowd::preempted(now);
                return false;
            }
            if tsc::since(self.begin, now) >= self.budget {
                return false;
            }
            if tsc::since(looked, now) >= until {
                return true;
            }
        }
    }
}

/// A wait without an end of its own: spins, and yields the CPU once for each spent budget.
#[derive(Debug)]
pub(crate) struct Patience(Spin);

impl Patience {
    #[cold]
    pub(crate) fn new() -> Self {
        Self(Spin::new(Budget::PATIENCE))
    }

    /// See [`Spin::watch`].
    #[inline]
    pub(crate) fn watch<W>(&self, word: &W) {
        self.0.watch(word);
    }

    #[inline]
    pub(crate) fn pause(&mut self) {
        if !self.0.pause() {
            futex::yield_now();
            // A new clock: what passed in the yield is no gap.
            self.0 = Spin::new(Budget::PATIENCE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_ends_a_spin_whose_budget_is_not_spent() {
        let mut spin = Spin::new(Budget::ns(u32::MAX));
        spin.last = spin.last.wrapping_sub(2 * spin.gap);
        spin.begin = spin.last;
        assert!(!spin.pause());
    }

    #[test]
    fn a_budget_ends() {
        let mut spin = Spin::new(Budget::ns(1_000));
        while spin.pause() {}
        assert!(tsc::since(spin.begin, tsc::ticks()) >= spin.budget);
    }
}
