//! Spinning: a budget in nanoseconds, cut short when spinning has become useless.
//!
//! Between two loads of its word a spinning waiter pauses and reads the time-stamp counter. Two
//! readings should be tens of nanoseconds apart; a gap of more than [`GAP_NS`] means that the
//! waiter lost its CPU in between. Then another thread wants to run, perhaps the owner that it
//! waits for, so the spin ends whatever the rest of its budget, and [`crate::crowd`] is notified.
//!
//! A spin also ends while a thread of the process has lost its CPU in a critical section, where the
//! scheduler tells that ([`crate::section`]).
//!
//! A CPU that can rest until a cache line is written ([`crate::umwait`]) does so instead of
//! pausing. But not at first, because returning from a rest takes longer than from a pause, and not
//! when backing off: the owner's writes to such a word's line would end each rest.

use core::hint::spin_loop;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::Budget;

use crate::{crowd, futex, pretend, section, tsc, umwait};

/// A gap between two loads that is too long for an interrupt or a kernel thread; [`crate::crowd`]
/// has the figures.
const GAP_NS: u32 = 500_000;
/// Number of pauses between two loads. A pause takes 10 to 50 ns, depending on the processor.
const PAUSES: u32 = 2;
/// The longest rest between two loads, short enough not to count as a gap.
const REST_NS: u32 = 100_000;
/// The time before the first rest: several times the time to return from a rest.
const AWAKE_NS: u32 = 1_000;
const _: () = assert!(REST_NS < GAP_NS / 2);

/// A spin in progress.
#[derive(Debug)]
pub(crate) struct Spin {
    begin: u64,
    last: u64,
    budget: u64,
    gap: u64,
    /// The first distance between two loads, if the spin backs off.
    backoff: Option<u64>,
    /// The longest rest, and the time of the first one, if there are rests.
    rest: Option<(u64, u64)>,
    /// The number of threads of the process that have lost their CPU in a section, if it is told.
    stalled: Option<&'static AtomicU32>,
}

impl Spin {
    /// Starts the budget.
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
            stalled: section::stalled(),
            rest: rests.then(|| (tsc::from_ns(REST_NS), now.wrapping_add(tsc::from_ns(AWAKE_NS)))),
        }
    }

    /// Must be called before each load of the word.
    #[inline]
    pub(crate) fn watch<W>(&self, word: &W) {
        #[cfg(target_arch = "x86_64")]
        if self.rest.is_some() {
            // SAFETY: rests are enabled only where they are supported; the word is borrowed.
            unsafe { umwait::watch(core::ptr::from_ref(word).cast()) }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = word;
    }

    /// Waits for the shortest time between two loads.
    #[inline]
    fn relax(&self) {
        if pretend::is_on() {
            // There may be more spinning threads than real CPUs.
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
            // Independent of the load by other programs.
            return self.last.wrapping_add(tsc::from_ns(pretend::LOOK_NS));
        }
        tsc::ticks()
    }

    /// Pauses. Returns `false` if the next load must be the last.
    #[inline]
    pub(crate) fn pause(&mut self) -> bool {
        // Backing off: the time until the next load is the time of the whole spin so far.
        let until = self.backoff.map_or(0, |first| tsc::since(self.begin, self.last).max(first));
        let looked = self.last;
        loop {
            self.relax();
            if self.stalled.is_some_and(|count| count.load(Relaxed) > 0) {
                return false;
            }
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

/// An unbounded wait: spins, and yields the CPU after each spent budget.
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
            // A new budget: the time of the yield is not a gap.
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
