//! A process-shared event.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::shared::SharedEvent;

use super::Shared;
use crate::deadline_after;

/// Tells one thread of any process that something has happened, and resets itself. It takes 4
/// bytes.
///
/// A set releases one waiter or, if there is none, the next thread that arrives. Sets that happen
/// while no thread waits count as one.
///
/// ```
/// static READY: antiphon_shared::Event = antiphon_shared::Event::new();
///
/// READY.set();
/// READY.wait();
/// assert!(!READY.try_wait());
/// ```
#[repr(transparent)]
pub struct Event(SharedEvent<Linux>);

impl Event {
    /// Creates an event that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self(SharedEvent::NEW)
    }

    /// Releases one waiter, or leaves the event set for the next one.
    pub fn set(&self) {
        self.0.set();
    }

    /// Blocks until the event is set, and resets it.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns whether the event was
    /// set.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        self.try_wait() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Resets the event, and returns whether it was set. Never blocks.
    pub fn try_wait(&self) -> bool {
        self.0.try_wait()
    }
}

impl Shared for Event {}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("is_set", &self.0.is_set()).finish()
    }
}
