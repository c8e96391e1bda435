//! The pace at which a thread reads the clock.

/// Spaces readings of the clock so that there is about one per period, however long a turn takes;
/// and at least one in `most` turns.
///
/// Between two readings only the number of turns is known. So a long turn is alone between two
/// readings, if those before it were long, too; otherwise it is together with at most `most`
/// others.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The approximate time between two readings, in nanoseconds.
    period_ns: u64,
    most: u32,
    turns: u32,
    looked_ns: u64,
}

impl Pace {
    /// A reading about every `period_ns`, and at least every `most` turns; the first at the first
    /// turn.
    #[must_use]
    pub const fn new(period_ns: u64, most: u32) -> Self {
        Self { period_ns, most, turns: 1, looked_ns: 0 }
    }

    /// Returns the time of the last reading.
    #[must_use]
    pub const fn looked_ns(&self) -> u64 {
        self.looked_ns
    }

    /// Takes a reading, `turns` turns after the last one. Returns how many turns there may be until
    /// the next: at most twice as many, so that one quick turn says little; nor more, if that
    /// reading was early.
    pub fn look(&mut self, now_ns: u64, turns: u32) -> u32 {
        let passed_ns = now_ns.saturating_sub(self.looked_ns).max(1);
        let fit = u64::from(turns.max(1)).saturating_mul(self.period_ns) / passed_ns;
        let early = turns < self.turns;
        let most = self.most.min(if early { self.turns } else { 2 * self.turns });
        self.turns = (fit.min(most.into()) as u32).max(1);
        self.looked_ns = now_ns;
        self.turns
    }

    /// Restarts from now: the time after the last reading was no turn.
    pub fn resume(&mut self, now_ns: u64) -> u32 {
        self.looked_ns = now_ns;
        self.turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of turns between readings, if a turn takes `turn_ns`.
    fn settled(pace: &mut Pace, now_ns: &mut u64, turn_ns: u64) -> u32 {
        let mut turns = pace.resume(*now_ns);
        for _ in 0..20 {
            *now_ns += u64::from(turns) * turn_ns;
            turns = pace.look(*now_ns, turns);
        }
        turns
    }

    #[test]
    fn looks_are_a_period_apart_whatever_a_turn_takes() {
        let (mut pace, mut now_ns) = (Pace::new(32_000, 256), 1_000);
        for (turn_ns, turns) in [(1_000, 32), (25, 256), (40_000, 1), (0, 256), (500, 64)] {
            assert_eq!(settled(&mut pace, &mut now_ns, turn_ns), turns, "{turn_ns} ns");
        }
    }

    #[test]
    fn one_long_turn_has_the_next_looked_at() {
        let (mut pace, mut now_ns) = (Pace::new(32_000, 256), 0);
        assert_eq!(settled(&mut pace, &mut now_ns, 25), 256);
        assert_eq!(pace.look(now_ns + 20_000_000, 256), 1);
        assert_eq!(pace.look(now_ns + 20_000_025, 1), 2);
    }

    #[test]
    fn a_clock_that_stands_still_or_goes_back_is_no_harm() {
        let mut pace = Pace::new(32_000, 256);
        assert_eq!(pace.look(1_000_000, 1), 1);
        assert_eq!(pace.look(1_000_000, 1), 2);
        assert_eq!(pace.look(0, 2), 4);
        assert_eq!(pace.look(1, 3), 4);
    }
}
