//! A thread, as the scheduler of its CPU knows it.

use super::virtual_time::{VirtualTime, WEIGHT};

/// What a thread shares its CPU with: threads of one group have one virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// With nobody.
    Own,
    /// With those of that number.
    Number(u32),
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whom it shares its CPU with.
    pub group: Group,
    /// Its share, beside others': [`WEIGHT`] is that of nice 0.
    pub weight: u32,
    /// What it has had, and its group (COOP-2).
    pub virtual_time: VirtualTime,
    /// What it is about.
    pub state: State,
    /// What it may expect.
    pub standing: Standing,
    /// Its earliest timer, by the clock of the scheduler, as it has told it.
    pub release_ns: Option<u64>,
    /// The least user virtual time of its best-effort work, as it has told it.
    pub importance: Option<u64>,
    /// Which turn was its last.
    pub turn: u64,
}

/// What a thread is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has the CPU.
    Running,
    /// It would go on.
    Ready,
    /// It has told its release, has nothing to do before, and is ready from then on.
    Waiting,
    /// It waits for something that the scheduler does not know.
    Asleep,
}

/// What a thread may expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has never polled: its fair share, at any time.
    Plain,
    /// It runs when it is due.
    Cooperative,
    /// As a plain one, for that reason: until it polls again or, if that was it, until its share is
    /// no longer exceeded.
    Demoted(Demotion),
}

/// Why a thread is not cooperative any longer (§3.2, "Policing Misbehaving Threads").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Demotion {
    /// It has run beyond its slice and the slack.
    Overrun,
    /// It has slept otherwise than by polling.
    Slept,
    /// It has had more than its share, and the threshold.
    Share,
}

impl Demotion {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Overrun, Self::Slept, Self::Share];

    /// As reports call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overrun => "overrun",
            Self::Slept => "slept",
            Self::Share => "share",
        }
    }
}

impl Member {
    /// Of that group, with that weight (at least 1), ready, and never polled.
    #[must_use]
    pub const fn new(group: Group, weight: u32) -> Self {
        Self {
            group,
            weight: if weight == 0 { 1 } else { weight },
            virtual_time: VirtualTime(0),
            state: State::Ready,
            standing: Standing::Plain,
            release_ns: None,
            importance: None,
            turn: 0,
        }
    }

    /// Whether it would run now, if it could.
    pub(super) const fn wants_cpu(&self) -> bool {
        matches!(self.state, State::Running | State::Ready)
    }

    /// When it is to run, if the scheduler minds that.
    pub(super) const fn timely_at(&self) -> Option<u64> {
        match (self.standing, self.state) {
            (Standing::Cooperative, State::Ready | State::Waiting) => self.release_ns,
            _ => None,
        }
    }
}

impl Default for Member {
    fn default() -> Self {
        Self::new(Group::Own, WEIGHT)
    }
}
