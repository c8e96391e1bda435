//! The last word of a line: the weight, state and standing of a thread.

use super::member::{Demotion, Group, Member, Standing, State};

/// `weight | state | standing | grouped`, the last word of a line.
#[derive(Clone, Copy)]
pub(super) struct Bits(u32);

impl Bits {
    /// The greatest weight.
    pub(super) const WEIGHT: u32 = (1 << 20) - 1;
    const STATE: u32 = 20;
    const STANDING: u32 = 22;
    const GROUPED: u32 = 1 << 25;

    pub(super) fn of(member: &Member) -> Self {
        let state = match member.state {
            State::Running => 0,
            State::Ready => 1,
            State::Waiting => 2,
            State::Asleep => 3,
        };
        let standing = match member.standing {
            Standing::Plain => 0,
            Standing::Cooperative => 1,
            Standing::Demoted(why) => 2 + why as u32,
        };
        let grouped = if member.group == Group::Own { 0 } else { Self::GROUPED };
        let weight = member.weight.min(Self::WEIGHT);
        Self(weight | state << Self::STATE | standing << Self::STANDING | grouped)
    }

    pub(super) fn from_word(word: u32) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u32 {
        self.0
    }

    pub(super) fn is_grouped(self) -> bool {
        self.0 & Self::GROUPED != 0
    }

    pub(super) fn weight(self) -> u32 {
        (self.0 & Self::WEIGHT).max(1)
    }

    pub(super) fn state(self) -> State {
        match self.0 >> Self::STATE & 3 {
            0 => State::Running,
            1 => State::Ready,
            2 => State::Waiting,
            _ => State::Asleep,
        }
    }

    pub(super) fn standing(self) -> Standing {
        match self.0 >> Self::STANDING & 7 {
            1 => Standing::Cooperative,
            2 => Standing::Demoted(Demotion::Overrun),
            3 => Standing::Demoted(Demotion::Slept),
            4 => Standing::Demoted(Demotion::Share),
            _ => Standing::Plain,
        }
    }
}
