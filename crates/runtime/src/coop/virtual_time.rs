//! Virtual time: how much CPU a thread has had, for its weight. It wraps around.

use core::cmp::Ordering;

/// The weight of a thread of nice 0, as in the kernel.
pub const WEIGHT: u32 = 1024;

/// The CPU time of a thread, divided by its weight: in 1024ths of a nanosecond of a thread of
/// [`WEIGHT`]. It wraps around after 208 days of such a thread, and after three of one of nice 19:
/// two values are comparable while they are less than half of that apart (COOP-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualTime(pub u64);

impl VirtualTime {
    /// Returns the virtual time after `ran_ns` nanoseconds of CPU, with the weight `weight`. It
    /// always advances if the thread ran, and by no more than can be compared (COOP-1), whatever
    /// the arguments are.
    #[must_use]
    pub fn after(self, ran_ns: u64, weight: u64) -> Self {
        let scaled = u128::from(ran_ns) * u128::from(WEIGHT) * 1024;
        let more = scaled.div_ceil(u128::from(weight.max(1))).min(1 << 62);
        Self(self.0.wrapping_add(more as u64))
    }

    /// Returns how far this is ahead of another, in nanoseconds of a thread of [`WEIGHT`], rounded
    /// down; negative if it is behind.
    #[must_use]
    pub fn ahead_ns(self, of: Self) -> i64 {
        (self.0.wrapping_sub(of.0) as i64) >> 10
    }

    /// Returns the later of two.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        if self.order(other) == Ordering::Less { other } else { self }
    }

    /// Compares two virtual times: the lesser is the earlier. There is no [`Ord`]: of three that
    /// are far apart, each may be earlier than the next.
    #[must_use]
    pub fn order(self, other: Self) -> Ordering {
        (self.0.wrapping_sub(other.0) as i64).cmp(&0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_around() {
        let before = VirtualTime(u64::MAX - 1023);
        let after = before.after(2, u64::from(WEIGHT));
        assert_eq!(after, VirtualTime(1024));
        assert_eq!((after.ahead_ns(before), before.ahead_ns(after)), (2, -2));
        assert_eq!((before.later(after), after.later(before)), (after, after));
    }

    #[test]
    fn runs_for_whoever_runs_at_all() {
        let heaviest = 88_761;
        assert_ne!(VirtualTime(0).after(1, heaviest), VirtualTime(0));
        assert_eq!(VirtualTime(0).after(0, heaviest), VirtualTime(0));
        assert_eq!(VirtualTime(0).after(3, 512), VirtualTime(6 * 1024));
        assert!(VirtualTime(7).after(u64::MAX, 1).ahead_ns(VirtualTime(7)) > 0);
    }
}
