//! The name of an action, and the state of its entry in the table.
//!
//! | bits of an entry's `state` | field | meaning |
//! |---|---|---|
//! | 0–1 | phase | `FREE`, `FILLING`, `LIVE`, `LEAVING` |
//! | 2–23 | generation | number of actions that have had the entry, including the present one |
//!
//! | bits of an [`ActionId`] | field |
//! |---|---|
//! | 0–9 | index of the entry |
//! | 10–31 | generation, from 1 on: a name that is zero names no action |

use super::SIGNALS;

/// The name of an action that messages run: its entry, and its generation among the entry's
/// actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ActionId(u32);

/// The name of an action that signals run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SignalId(pub(super) ActionId);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct State(pub(super) u32);

impl State {
    pub(super) const FREE: u32 = 0;
    pub(super) const FILLING: u32 = 1;
    pub(super) const LIVE: u32 = 2;
    pub(super) const LEAVING: u32 = 3;

    pub(super) const fn new(generation: u32, phase: u32) -> Self {
        Self((generation & ActionId::GENERATIONS) << 2 | phase)
    }

    /// Returns the state of an entry whose action of that generation has left: free for the next.
    /// After the last generation it is `LEAVING` for good, because an old name would mean a new
    /// action.
    pub(super) const fn left(generation: u32) -> Self {
        let last = generation == ActionId::GENERATIONS;
        Self::new(generation, if last { Self::LEAVING } else { Self::FREE })
    }

    pub(super) const fn generation(self) -> u32 {
        self.0 >> 2
    }

    pub(super) const fn phase(self) -> u32 {
        self.0 & 3
    }
}

impl ActionId {
    pub(super) const INDEX_BITS: u32 = 10;
    const GENERATIONS: u32 = u32::MAX >> Self::INDEX_BITS;

    pub(super) const fn new(index: usize, generation: u32) -> Self {
        Self(generation << Self::INDEX_BITS | index as u32)
    }

    pub(super) const fn index(self) -> usize {
        (self.0 & ((1 << Self::INDEX_BITS) - 1)) as usize
    }

    pub(super) const fn live(self) -> State {
        State::new(self.0 >> Self::INDEX_BITS, State::LIVE)
    }

    /// Returns the name as one word, which can be sent.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether signals run the named action; a name that is zero counts as such, by its
    /// index.
    pub(super) const fn is_of_signals(self) -> bool {
        self.index() < SIGNALS
    }

    /// Returns the name of a word that [`bits`](Self::bits) returned, which is never 0. A word of
    /// another origin names an action that may not exist; messages for it run nothing.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl SignalId {
    /// Returns the bit of this signal in a mailbox's word.
    pub(super) const fn bit(self) -> u64 {
        1 << self.0.index()
    }

    /// Returns the signal whose [`action`](Self::action) this is; `None` if messages run it.
    #[must_use]
    pub const fn from_action(action: ActionId) -> Option<Self> {
        if action.is_of_signals() { Some(Self(action)) } else { None }
    }

    /// Returns the name by which [`Actions::unregister`](super::Actions::unregister) removes it.
    #[must_use]
    pub const fn action(self) -> ActionId {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_actions_have_one_name() {
        let last = ActionId::GENERATIONS;
        let before = State::left(last - 1);
        assert_eq!((before.generation(), before.phase()), (last - 1, State::FREE));
        assert_eq!(ActionId::new(7, last).live().generation(), last);
        assert_eq!(State::left(last).phase(), State::LEAVING);
    }
}
