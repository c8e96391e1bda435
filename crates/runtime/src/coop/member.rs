//! A thread, as the scheduler of its CPU knows it.

use super::virtual_time::{VirtualTime, WEIGHT};

/// The unit that shares a CPU: threads of one group have one virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The thread is in no group.
    Own,
    /// The thread is in the group of that number.
    Number(u32),
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The group that the thread shares its CPU with.
    pub group: Group,
    /// The thread's share, relative to others': [`WEIGHT`] is that of nice 0.
    pub weight: u32,
    /// The CPU time of the thread and its group, by weight (COOP-2).
    pub virtual_time: VirtualTime,
    /// The activity of the thread.
    pub state: State,
    /// How the scheduler treats the thread.
    pub standing: Standing,
    /// The release time of the thread's earliest timer, by the scheduler's clock, as last told.
    pub release_ns: Option<u64>,
    /// The least user virtual time of the thread's best-effort work, as last told.
    pub importance: Option<u64>,
    /// The number of the thread's latest turn.
    pub turn: u64,
}

/// The activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread has the CPU.
    Running,
    /// The thread is ready to run.
    Ready,
    /// The thread has told its release, has no work until then, and is ready from then on.
    Waiting,
    /// The thread waits for something that the scheduler does not know about.
    Asleep,
}

/// How the scheduler treats a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The thread has never polled: it gets its fair share, at no particular time.
    Plain,
    /// The thread runs when it is due.
    Cooperative,
    /// Treated as a plain thread, for the given reason: until the thread polls again or, for
    /// [`Demotion::Share`], until its share is no longer exceeded.
    Demoted(Demotion),
}

/// The reason why a thread is no longer cooperative (§3.2, "Policing Misbehaving Threads").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Demotion {
    /// The thread has run beyond its slice and the slack.
    Overrun,
    /// The thread has slept otherwise than by polling.
    Slept,
    /// The thread has had more than its share plus the threshold.
    Share,
}

impl Demotion {
    /// All reasons.
    pub const ALL: [Self; 3] = [Self::Overrun, Self::Slept, Self::Share];

    /// The name that reports use.
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
    /// Creates a ready member that has never polled, in the given group, with the given weight (at
    /// least 1).
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

    /// Returns whether the thread is running or ready.
    pub(super) const fn wants_cpu(&self) -> bool {
        matches!(self.state, State::Running | State::Ready)
    }

    /// Returns the release time that the scheduler keeps, if there is one.
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
