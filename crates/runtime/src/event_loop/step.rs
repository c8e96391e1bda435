//! When an event is due, what happens to it after a call, and its number.

/// When an event should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// From that time on, in nanoseconds, before all events without a release time.
    Release(u64),
    /// When no timer is due, and nothing is more important: the least user virtual time first.
    Importance(u64),
    /// When it is [woken](super::EventLoop::wake), and then with that importance.
    Woken(u64),
}

/// What happens to an event after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The event has ended.
    Done,
    /// The event is called again, with that importance.
    More(u64),
    /// The event is called again from that time on, in nanoseconds, as a timer.
    At(u64),
    /// The event is called again when it is woken, with its last importance.
    Asleep,
}

/// The number of an event in its loop; it is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub(super) u64);

impl EventId {
    /// Returns the id of a [number](Self::number): for bindings to other languages.
    #[must_use]
    pub const fn of(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number of the event, less than 2⁶³.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}
