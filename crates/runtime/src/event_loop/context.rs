//! The access that a callback has to its loop.

use alloc::boxed::Box;
use core::fmt;

use crate::coop::Cooperate;

use super::step::{EventId, Step};
use super::wait::Wait;
use super::{EventLoop, Stats};

/// The callback of an event.
pub trait Callback<W: Wait>: 'static {
    /// Runs the event, or a part of it.
    fn call(&mut self, context: &mut Context<'_, W>) -> Step;

    /// Asks the callback whether its event may be cancelled and dropped now. If not, the event
    /// stays, is called when it is woken or due as before, and returns [`Step::Done`] as soon as it
    /// may be dropped. May be called again.
    fn cancel(&mut self) -> bool {
        true
    }
}

/// The event that is being called.
pub(super) struct Current {
    pub(super) id: u64,
    pub(super) release_ns: Option<u64>,
    pub(super) importance: u64,
    pub(super) begun_ns: u64,
    /// Whether the event was cancelled during the call.
    pub(super) cancelled: bool,
    /// Whether the event was woken during the call.
    pub(super) woken: bool,
    /// Whether the event has a source.
    pub(super) has_source: bool,
}

/// The access of a running callback to its loop.
pub struct Context<'a, W: Wait> {
    pub(super) events: &'a mut EventLoop<W>,
    pub(super) ready: W::Ready,
}

impl<W: Wait> Context<'_, W> {
    /// Like [`EventLoop::cancel`]; an event may cancel itself.
    pub fn cancel(&mut self, id: EventId) -> bool {
        self.events.cancel(id)
    }

    /// Like [`EventLoop::wake`].
    pub fn wake(&mut self, id: EventId) -> bool {
        self.events.wake(id)
    }

    /// Stops the loop after this callback.
    pub fn stop(&mut self) {
        self.events.stop();
    }

    /// Like [`EventLoop::cooperate_by`].
    pub fn cooperate_by(&mut self, tier: Box<dyn Cooperate>) {
        self.events.cooperate_by(tier);
    }

    /// Like [`EventLoop::stats`].
    #[must_use]
    pub fn stats(&self) -> &[Stats] {
        self.events.stats()
    }

    /// Like [`EventLoop::reset_stats`]; the calling callback is counted when it has returned.
    pub fn reset_stats(&mut self) {
        self.events.reset_stats();
    }

    /// Returns the event that is being called.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId(self.current().id)
    }

    /// Returns the reports of the event's source since the event was last called.
    #[must_use]
    pub fn ready(&self) -> W::Ready {
        self.ready
    }

    /// Returns the event's release time, if it is called because that has passed. Periodic events
    /// should compute their next release from this, and not from the time of the call.
    #[must_use]
    pub fn release_ns(&self) -> Option<u64> {
        self.current().release_ns
    }

    /// Returns how long after its release the event was called, in nanoseconds.
    #[must_use]
    pub fn tardiness_ns(&self) -> Option<u64> {
        let Current { release_ns, begun_ns, .. } = self.current();
        release_ns.map(|at| begun_ns.saturating_sub(at))
    }

    /// Returns the time of the loop's clock, in nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        W::now_ns()
    }

    /// Returns until when the callback may go on: the loop's next release, or that of others that
    /// share the CPU, or the end of the loop's turn, whichever is first; and no longer than half of
    /// the [limit](super::Options::long_ns) of a callback, so that a loop without other work checks
    /// its sources. Events that are submitted meanwhile count.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.events.until_ns()
    }

    /// Returns how long the callback may go on, in nanoseconds.
    #[must_use]
    pub fn left_ns(&self) -> u64 {
        self.until_ns().saturating_sub(W::now_ns())
    }

    /// Returns whether the callback should return soon: because its time is over, or because
    /// something more important is waiting, including posts of other threads. Reads the clock.
    pub fn is_over(&mut self) -> bool {
        self.events.take_in();
        let Current { release_ns, importance, .. } = self.current();
        let is_work = release_ns.is_none();
        let more_important = |other| is_work && other < *importance;
        self.events.is_stopped()
            || self.events.first_importance().is_some_and(more_important)
            || self.left_ns() == 0
    }

    fn current(&self) -> &Current {
        self.events.current().expect("a callback is being called")
    }
}

impl<W: Wait> fmt::Debug for Context<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("id", &self.id()).finish_non_exhaustive()
    }
}
