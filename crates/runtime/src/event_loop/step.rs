//! When an event is due, what becomes of it after a call, and its number.

/// When an event is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// From that time on, before all that is not due at a time.
    Release(u64),
    /// When no timer is due, and nothing is more important: the least user virtual time first.
    Importance(u64),
    /// When it is [woken](super::EventLoop::wake), and then by that importance.
    Woken(u64),
}

/// The fate of an event that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The event is over.
    Done,
    /// The event is called again, by that importance.
    More(u64),
    /// The event is called again from that time on, as a timer.
    At(u64),
    /// The event is called again when it is woken, by the importance that it has had last.
    Asleep,
}

/// The number of an event of that loop; never that of another event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub(super) u64);

impl EventId {
    /// The id of the [number](Self::number): for other languages.
    #[must_use]
    pub const fn of(number: u64) -> Self {
        Self(number)
    }

    /// Less than 2⁶³.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}
