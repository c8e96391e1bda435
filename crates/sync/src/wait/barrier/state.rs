//! The state of a barrier: the waiters, whether the list is in use, and how many have come.

use antiphon_platform::WaiterId;

/// A value of the state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u64);

impl State {
    const LISTED: u64 = 1 << WaiterId::INDEX_BITS;
    const CAME_SHIFT: u32 = WaiterId::INDEX_BITS + 1;
    const COUNT_BITS: u32 = u64::BITS - Self::CAME_SHIFT;

    pub(super) fn new(waiters: u32, came: u64) -> Self {
        Self(came << Self::CAME_SHIFT | u64::from(waiters))
    }

    /// Returns the index of the last arrival among the waiters with a node and no deadline; 0 for
    /// no waiter.
    pub(super) fn waiters(self) -> u32 {
        (self.0 & (Self::LISTED - 1)) as u32
    }

    pub(super) fn listed(self) -> bool {
        self.0 & Self::LISTED != 0
    }

    pub(super) fn with_listed(self, listed: bool) -> Self {
        Self(self.0 & !Self::LISTED | if listed { Self::LISTED } else { 0 })
    }

    pub(super) fn came(self) -> u64 {
        self.0 >> Self::CAME_SHIFT
    }

    /// Returns the number of the present round, with this many `parties`.
    pub(super) fn round(self, parties: u64) -> u64 {
        self.came() / parties
    }

    /// Returns the state after one more arrival, with this waiter at the head of the list, or 0.
    pub(super) fn after_one_more(self, parties: u64, waiters: u32) -> Self {
        // Wraps at the end of a round.
        let rounds = (1 << Self::COUNT_BITS) / parties;
        Self::new(waiters, (self.came() + 1) % (rounds * parties))
    }

    /// Returns the state after a thread that came in this round has taken its arrival back.
    pub(super) fn after_one_less(self) -> Self {
        Self(self.0 - (1 << Self::CAME_SHIFT))
    }

    /// Returns how many threads have yet to come in this round.
    pub(super) fn lacks(self, parties: u64) -> u64 {
        parties - self.came() % parties
    }

    /// Returns whether the next thread to come is the last of its round.
    pub(super) fn lacks_one(self, parties: u64) -> bool {
        self.lacks(parties) == 1
    }

    /// Returns the state with the present round restarted.
    pub(super) fn begun_anew(self, parties: u64) -> Self {
        Self::new(0, self.round(parties) * parties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_arrivals_begins_anew_at_the_end_of_a_round() {
        for parties in [1, 2, 3, 7, 1000, u64::from(u32::MAX)] {
            let rounds = (1 << State::COUNT_BITS) / parties;
            let last = State::new(5, rounds * parties - 1);
            assert!(last.lacks_one(parties) && last.round(parties) == rounds - 1);
            assert!(last.after_one_more(parties, 0) == State(0));
            let first = State(0).after_one_more(parties, 9);
            assert_eq!((first.came(), first.waiters()), (1 % (rounds * parties), 9));
        }
    }

    #[test]
    fn a_round_that_begins_anew_has_its_number_and_nobody_in_it() {
        let parties = 5;
        let state = State::new(77, 13);
        assert_eq!(state.round(parties), 2);
        assert!(state.begun_anew(parties) == State::new(0, 10));
        let complete = State::new(77, 14).after_one_more(parties, 0);
        assert_eq!((complete.round(parties), complete.waiters()), (3, 0));
    }
}
