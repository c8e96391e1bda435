//! Paired readings of the time-stamp counter and the monotonic clock at one moment.
//!
//! A thread may lose its CPU between the two readings; a rate computed from such a pair is wrong by
//! any factor. So the counter is read before and after the clock. The clock's moment lies between
//! the two, and their distance is the uncertainty:
//!
//! ```text
//! counter   before ----------- ticks ----------- after
//!                    doubt       |       doubt
//! clock                 ns is somewhere in here
//! ```

use antiphon_platform::Clock;

use crate::{clock, tsc};

/// At most one in `DOUBT` of the ticks between two moments may be in doubt.
const DOUBT: u64 = 100;
/// Number of readings that [`measure_ticks`] takes at each end.
const LOOKS: usize = 8;

/// One moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The counter, in ticks.
    pub(crate) ticks: u64,
    /// The largest error of `ticks`, in ticks.
    pub(crate) doubt: u64,
    /// The monotonic clock, in nanoseconds.
    pub(crate) ns: u64,
}

impl Moment {
    /// Reads both clocks now. Doesn't block; the clock is a call of the vDSO.
    #[inline]
    pub(crate) fn now() -> Self {
        Self::read(tsc::ticks, || clock::now(Clock::Monotonic))
    }

    /// A moment by a counter and a clock in nanoseconds.
    fn read(mut counter: impl FnMut() -> u64, clock: impl FnOnce() -> u64) -> Self {
        let before = counter();
        let ns = clock();
        // If the counter went back, the doubt is huge.
        let half = counter().wrapping_sub(before) / 2;
        Self { ticks: before.wrapping_add(half), doubt: half + 1, ns }
    }

    /// The ticks and nanoseconds from this moment to `later`; `None` if more than a hundredth of
    /// the ticks is in doubt, or a clock went back.
    pub(crate) fn until(&self, later: &Self) -> Option<(u64, u64)> {
        let ticks = tsc::since(self.ticks, later.ticks);
        let ns = later.ns.checked_sub(self.ns)?;
        (self.doubt.saturating_add(later.doubt) <= ticks / DOUBT).then_some((ticks, ns))
    }
}

/// Counts ticks over at least `least_ns` nanoseconds; returns the ticks and the nanoseconds. Keeps
/// the CPU busy during that time.
///
/// The two match within one part in 99, and on a machine with CPU time to spare within some 50 ns.
/// Returns `None` if the clocks can't be read that closely one after the other.
#[must_use]
pub fn measure_ticks(least_ns: u64) -> Option<(u64, u64)> {
    let (begin, end) = measure(least_ns, Moment::now)?;
    begin.until(&end)
}

/// Two moments, at least `least_ns` nanoseconds apart, whose [difference](Moment::until) is exact
/// enough.
pub(crate) fn measure(least_ns: u64, mut look: impl FnMut() -> Moment) -> Option<(Moment, Moment)> {
    let mut begin = look();
    for _ in 1..LOOKS {
        let again = look();
        if again.doubt < begin.doubt {
            begin = again;
        }
    }
    let mut looks = 0;
    while looks < LOOKS {
        let end = look();
        if end.ns.saturating_sub(begin.ns) >= least_ns {
            if begin.until(&end).is_some() {
                return Some((begin, end));
            }
            looks += 1;
        }
        core::hint::spin_loop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// A machine on which each reading of a clock takes a microsecond, and some take longer,
    /// because the thread lost its CPU before. The counter ticks three times a nanosecond.
    struct Machine<F> {
        ns: Cell<u64>,
        readings: Cell<u64>,
        lost: F,
    }

    impl<F: Fn(u64) -> u64> Machine<F> {
        fn measure(lost: F) -> Option<(u64, u64)> {
            let machine = Self { ns: Cell::new(1 << 30), readings: Cell::new(0), lost };
            let look = || Moment::read(|| 3 * machine.read(), || machine.read());
            let (begin, end) = measure(500_000, look)?;
            begin.until(&end)
        }

        fn read(&self) -> u64 {
            let reading = self.readings.get();
            self.readings.set(reading + 1);
            self.ns.set(self.ns.get() + 1_000 + (self.lost)(reading));
            self.ns.get()
        }
    }

    fn is_right((ticks, ns): (u64, u64)) -> bool {
        ns >= 500_000 && ticks.abs_diff(3 * ns) <= ticks / (DOUBT - 1)
    }

    #[test]
    fn a_lost_cpu_changes_no_rate() {
        for lost in [3_000, 10_000, 300_000, 4_000_000, 100_000_000] {
            for at in 0..700 {
                let seen = Machine::measure(|reading| if reading == at { lost } else { 0 });
                assert!(seen.is_some_and(is_right), "{lost} ns lost before reading {at}: {seen:?}");
            }
        }
    }

    #[test]
    fn a_cpu_lost_again_and_again_leaves_the_right_rate_or_none() {
        for (every, lost) in (1..50).flat_map(|every| [(every, 20_000), (every, 4_000_000)]) {
            let seen = Machine::measure(|reading| if reading % every == 0 { lost } else { 0 });
            assert!(seen.is_none_or(is_right), "{lost} ns lost at each {every}th: {seen:?}");
            assert!(every < 4 || seen.is_some(), "{lost} ns lost at each {every}th: no rate");
        }
        assert_eq!(Machine::measure(|_| 20_000), None);
    }

    #[test]
    fn both_clocks_are_read_closely() {
        // The clock is a call of the vDSO, or of the kernel: far below a hundredth of 10 ms.
        let seen = measure_ticks(10_000_000);
        assert!(seen.is_some_and(|(ticks, ns)| ticks > 0 && ns >= 10_000_000), "{seen:?}");
    }

    #[test]
    fn a_clock_that_goes_back_tells_nothing() {
        let moment = |ticks, ns| Moment { ticks, doubt: 1, ns };
        assert_eq!(moment(1_000, 10).until(&moment(4_000, 1_010)), Some((3_000, 1_000)));
        assert_eq!(moment(1_000, 10).until(&moment(4_000, 9)), None);
        assert_eq!(moment(4_000, 10).until(&moment(1_000, 1_010)), None);
        let mut counter = [4_000, 3_000].into_iter();
        let back = Moment::read(|| counter.next().unwrap_or(0), || 10);
        assert_eq!(back.until(&moment(9_000, 1_010)), None);
    }
}
