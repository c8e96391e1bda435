//! One scale of importance for all programs of a group: Priority-Progress as a virtual time.
//!
//! Work that matters more is done further ahead of its due time, by a share of the look-ahead:
//!
//! ```text
//!   importance = due - look-ahead * advance of its rank
//!
//!   rank          advance        what it is
//!   Essential     1 … 3/4        I frames; sound
//!   Main          3/4 … 1/2      P frames; a game's base
//!   Refined       1/2 … 1/4      B frames
//!   Fine          1/4 … 0        b frames; details
//! ```
//!
//! A rank has levels, 0 to 65535, so that work of equal importance is not lost all at once: if all
//! of a rank had the same value, each piece would be begun just before it is too late.
//!
//! A loop does the work with the smallest importance value first, and drops work that is due before
//! its turn. So with too little of the CPU the front of the work falls behind until the work at the
//! front is due and dropped: the finest details first, then more of them, then the refined work,
//! and so on. How far the front falls follows from the work itself; costs are never estimated.
//!
//! Programs of a group with a common scale have a common front, because the scheduler runs the
//! program that is behind. So they lose the same ranks: their *quality* is equal, whatever it costs
//! each of them (§5.3 of the document does this by numbers of frames; a rank also fits sound, games
//! and players of different rates).
//!
//! After Krasic, Saubhasik, Sinha and Goel, "Fair and Timely Scheduling via Cooperative Polling"
//! (EuroSys 2009), §2.2; with a sliding window, so that there are no edges at which all the details
//! of one window would come before the essentials of the next.

/// The importance class of a piece of work. Within a rank, work with a higher level is dropped
/// earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Without this work there is no result.
    Essential(u16),
    /// Without this work there is little.
    Main(u16),
    /// Without this work there is half of the result.
    Refined(u16),
    /// A detail.
    Fine(u16),
}

/// The scale of a group: programs that share it have comparable importance values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How far ahead the most important work is done, in nanoseconds.
    pub look_ahead_ns: u64,
}

impl Default for Scale {
    /// 400 ms: 24 frames at 60 Hz.
    fn default() -> Self {
        Self { look_ahead_ns: 400_000_000 }
    }
}

impl Scale {
    /// The user virtual time of work of that rank that is due at `due_ns`, in nanoseconds of the
    /// same clock. Smaller values are more important.
    pub fn importance(&self, due_ns: u64, rank: Rank) -> u64 {
        due_ns.saturating_sub(self.advance_ns(rank))
    }

    /// How much earlier than its due time work of that rank is done, in nanoseconds.
    pub fn advance_ns(&self, rank: Rank) -> u64 {
        let (quarters, level) = match rank {
            Rank::Essential(level) => (4, level),
            Rank::Main(level) => (3, level),
            Rank::Refined(level) => (2, level),
            Rank::Fine(level) => (1, level),
        };
        let quarter = u128::from(self.look_ahead_ns / 4);
        let down = quarter * u128::from(level) / u128::from(u16::MAX);
        // The result is at most the look-ahead, so it fits.
        (quarters * quarter - down) as u64
    }
}

/// The level of the `number`th of equal details: the bits of the number in reverse. Whatever share
/// of the levels is dropped, the rest is then spread evenly.
pub fn spread(number: u64) -> u16 {
    // Only the low 16 bits are used.
    (number as u16).reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_same_time_are_in_order() {
        let scale = Scale::default();
        let last = u16::MAX;
        let ranks = [
            Rank::Essential(0),
            Rank::Essential(9),
            Rank::Main(0),
            Rank::Refined(0),
            Rank::Fine(0),
            Rank::Fine(last),
        ];
        let times = ranks.map(|rank| scale.importance(1_000_000_000, rank));
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        assert_eq!((times[0], times[5]), (600_000_000, 1_000_000_000));
        assert_eq!(scale.importance(5, Rank::Essential(0)), 0);
        // A rank ends where the next one begins.
        assert_eq!(scale.advance_ns(Rank::Main(last)), scale.advance_ns(Rank::Refined(0)));
    }

    #[test]
    fn any_threshold_keeps_an_even_part() {
        for kept in 1..=8 {
            let limit = 65_536 / 8 * kept;
            for start in 0..64 {
                let left = (start..start + 8).filter(|&n| u32::from(spread(n)) < limit).count();
                assert_eq!(left, kept as usize, "of eight from {start}");
            }
        }
    }
}
