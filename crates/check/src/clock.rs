//! Names of events, and vector clocks over events.

use std::fmt;

/// The largest number of threads of a model, including the setup (thread 0).
pub(crate) const SLOTS: usize = 16;

/// An event: the `index`-th visible operation of `thread`, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(crate) struct Id {
    pub(crate) thread: u16,
    pub(crate) index: u16,
}

impl Id {
    /// The write that gave each location its first value.
    pub(crate) const INIT: Self = Self { thread: 0, index: 0 };
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.thread, self.index)
    }
}

/// A set of events that holds, with each event, all earlier ones of the same thread.
///
/// Signed, because the maximum of signed half words is one instruction on every x86-64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(align(16))]
pub(crate) struct Clock([i16; SLOTS]);

impl Clock {
    /// All events: nothing is [restricted](Self::restrict) yet.
    pub(crate) const ALL: Self = Self([i16::MAX; SLOTS]);

    pub(crate) fn covers(&self, id: Id) -> bool {
        self.0[usize::from(id.thread)] >= id.index as i16
    }

    pub(crate) fn include(&mut self, id: Id) {
        let slot = &mut self.0[usize::from(id.thread)];
        *slot = (*slot).max(id.index as i16);
    }

    pub(crate) fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = (*mine).max(theirs);
        }
    }

    /// Returns whether this set includes all of `other`.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(true, |all, (&mine, theirs)| all & (mine >= theirs))
    }

    /// Lowers the slot of the event's thread to the event: of several events, the first one
    /// remains.
    pub(crate) fn restrict(&mut self, id: Id) {
        let slot = &mut self.0[usize::from(id.thread)];
        *slot = (*slot).min(id.index as i16);
    }

    /// Returns whether `other` has one of the events to which this was
    /// [restricted](Self::restrict).
    pub(crate) fn touches(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(false, |any, (&mine, theirs)| any | (mine <= theirs))
    }
}
