//! One scale of importance for all programs of a group: Priority-Progress as a virtual time.
//!
//! Work that is due at a time and matters more is done earlier by a part of the look-ahead:
//!
//! ```text
//!   importance = due - look-ahead * advance of its rank
//!
//!   rank                          advance        what it is
//!   Essential                     1              I frames; sound; a game's state
//!   Main                          3/4            P frames
//!   Refined                       1/2            B frames
//!   Fine(0 … 65535)               1/4 … 0        b frames; details
//! ```
//!
//! A loop does the work of least importance value first, and drops what is due before its turn.
//! So with too little of the CPU the front of what is done falls behind until what is due at it
//! is dropped: the finest details first, then more of them, then the refined, and so on. How far
//! it falls is found by the work itself, and nobody estimates what anything costs.
//!
//! Programs of a group that use one scale are at the same front, since the scheduler runs who is
//! behind. So they lose the same ranks: their *quality* is alike, whatever it costs each of them
//! (§5.3 of the document does this by numbers of frames; a rank also fits sound, games and
//! players of different rates).
//!
//! After Krasic, Saubhasik, Sinha and Goel, "Fair and Timely Scheduling via Cooperative Polling"
//! (EuroSys 2009), §2.2; a sliding window here, so that there are no edges at which all the
//! details of one window would come before the essentials of the next.

/// How much a piece of work matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Without it there is nothing.
    Essential,
    /// Without it there is little.
    Main,
    /// Without it there is half.
    Refined,
    /// A detail; the higher the number, the sooner it is dropped.
    Fine(u16),
}

/// The scale: programs that share it can be compared.
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
    /// The user virtual time of work of that rank that is due at `due_ns`: in nanoseconds of the
    /// same clock, less is more important.
    pub fn importance(&self, due_ns: u64, rank: Rank) -> u64 {
        due_ns.saturating_sub(self.advance_ns(rank))
    }

    /// How much earlier than it is due work of that rank is done, in nanoseconds.
    pub fn advance_ns(&self, rank: Rank) -> u64 {
        let quarter = self.look_ahead_ns / 4;
        match rank {
            Rank::Essential => self.look_ahead_ns,
            Rank::Main => 3 * quarter,
            Rank::Refined => 2 * quarter,
            Rank::Fine(level) => {
                let left = u128::from(u16::MAX - level);
                // At most a quarter, so it fits.
                (u128::from(quarter) * left / u128::from(u16::MAX)) as u64
            }
        }
    }
}

/// The level of the `number`th of equal details, so that whatever part of the levels is dropped,
/// what is left is spread evenly: the bits of the number in reverse.
pub fn spread(number: u64) -> u16 {
    // The low 16 bits are what is meant.
    (number as u16).reverse_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_the_same_time_are_in_order() {
        let scale = Scale::default();
        let ranks = [
            Rank::Essential,
            Rank::Main,
            Rank::Refined,
            Rank::Fine(0),
            Rank::Fine(9),
            Rank::Fine(u16::MAX),
        ];
        let times = ranks.map(|rank| scale.importance(1_000_000_000, rank));
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
        assert_eq!((times[0], times[5]), (600_000_000, 1_000_000_000));
        assert_eq!(scale.importance(5, Rank::Essential), 0);
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
