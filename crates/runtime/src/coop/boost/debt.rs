//! The CPU time that a loop has used beyond its share, and how it gives that back.
//!
//! The kernel does not charge a thread that shares time for its time in a real-time class. A loop
//! that ran for `b` there has had `b`, where its share `s` of that time would have been `s·b`: it
//! owes `b·(1 − s)`. A thread that does not want the CPU for a time `t` forgoes `s·t`: so it
//! settles by sleeping for `b·(1 − s) / s`. The share is measured: while the thread wants the CPU,
//! it runs for a part of the time, and waits for the rest.
//!
//! - DEBT-1: if no other thread wants the CPU, the share is 1, and nothing is owed.
//! - DEBT-2: the debt grows by borrowing only, and never falls below 0: a loop that sleeps for
//!   other reasons settles, but accumulates no credit.
//! - DEBT-3: a nap counts only if the thread could have run. A thread that has just run beyond its
//!   share would not; so a nap begins while the thread runs by its share: some time after the
//!   kernel has given it the CPU.

/// The account of one loop. All times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Debt {
    owed_ns: u64,
    /// How long the loop recently ran and waited while it shared time.
    ran_ns: u64,
    waited_ns: u64,
}

impl Debt {
    /// A loop that owes nothing, and whose share is not known.
    pub const NEW: Self = Self { owed_ns: 0, ran_ns: 0, waited_ns: 0 };
    /// After the loop has wanted the CPU for this much longer, older measurements count half.
    const MEMORY_NS: u64 = 1_000_000_000;

    /// The debt, in CPU time.
    #[must_use]
    pub const fn owed_ns(&self) -> u64 {
        self.owed_ns
    }

    /// Records that the loop ran for `ran_ns`, sharing time, and was ready for `waited_ns` without
    /// running.
    pub fn shared(&mut self, ran_ns: u64, waited_ns: u64) {
        self.ran_ns = self.ran_ns.saturating_add(ran_ns);
        self.waited_ns = self.waited_ns.saturating_add(waited_ns);
        while self.ran_ns.saturating_add(self.waited_ns) > Self::MEMORY_NS {
            self.ran_ns /= 2;
            self.waited_ns /= 2;
        }
    }

    /// Records that the loop ran for `ran_ns` in a real-time class (DEBT-1).
    pub fn borrow(&mut self, ran_ns: u64) {
        let others = self.part(ran_ns, self.waited_ns);
        self.owed_ns = self.owed_ns.saturating_add(others);
    }

    /// Records that the loop did not want the CPU for `slept_ns` (DEBT-2).
    pub fn slept(&mut self, slept_ns: u64) {
        self.owed_ns = self.owed_ns.saturating_sub(self.part(slept_ns, self.ran_ns.max(1)));
    }

    /// Returns how long the loop must sleep until nothing is owed. Rounded up: a loop that sleeps
    /// for a nanosecond less keeps a debt for good, and sleeps for it again and again.
    #[must_use]
    pub fn nap_ns(&self) -> u64 {
        let (ran, both) = (u128::from(self.ran_ns.max(1)), self.both());
        u64::try_from((u128::from(self.owed_ns) * both).div_ceil(ran)).unwrap_or(u64::MAX)
    }

    fn both(&self) -> u128 {
        (u128::from(self.ran_ns) + u128::from(self.waited_ns)).max(1)
    }

    fn part(&self, of_ns: u64, part_ns: u64) -> u64 {
        // Not more than `of_ns`, except for rounding.
        u64::try_from(u128::from(of_ns) * u128::from(part_ns) / self.both()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_alone_owes_nothing() {
        let mut debt = Debt::NEW;
        debt.shared(80_000_000, 0);
        debt.borrow(5_000_000);
        assert_eq!((debt.owed_ns(), debt.nap_ns()), (0, 0));
        // Nor does a loop whose share is not known.
        let mut debt = Debt::NEW;
        debt.borrow(5_000_000);
        assert_eq!(debt.owed_ns(), 0);
    }

    #[test]
    fn what_was_borrowed_is_given_back_by_a_nap_of_as_long_as_it_says() {
        let mut debt = Debt::NEW;
        // The share is a twelfth of the CPU.
        debt.shared(20_000_000, 220_000_000);
        debt.borrow(1_200_000);
        assert_eq!(debt.owed_ns(), 1_100_000);
        assert_eq!(debt.nap_ns(), 13_200_000);
        debt.slept(6_600_000);
        assert_eq!(debt.owed_ns(), 550_000);
        debt.slept(debt.nap_ns());
        assert_eq!(debt.owed_ns(), 0);
        // The loop accumulates no credit.
        debt.slept(50_000_000);
        debt.borrow(12);
        assert_eq!(debt.owed_ns(), 11);
    }

    #[test]
    fn one_nap_of_as_long_as_it_says_settles_whatever_the_share_is() {
        for (ran_ns, waited_ns) in [(1, 7), (3, 20), (120_000_003, 879_999_990), (7, 1)] {
            for borrowed_ns in (1..200).chain([4_711, 999_999, 123_456_789]) {
                let mut debt = Debt::NEW;
                debt.shared(ran_ns, waited_ns);
                debt.borrow(borrowed_ns);
                debt.slept(debt.nap_ns());
                assert_eq!(debt.owed_ns(), 0, "{borrowed_ns} at {ran_ns} of {waited_ns}");
            }
        }
    }

    #[test]
    fn a_share_that_changes_is_learned_again() {
        let mut debt = Debt::NEW;
        debt.shared(900_000_000, 0);
        for _ in 0..100 {
            debt.shared(10_000_000, 90_000_000);
        }
        debt.borrow(1_000_000);
        assert!((880_000..=900_000).contains(&debt.owed_ns()), "{}", debt.owed_ns());
    }
}
