//! The access that a callback has to its loop.

use alloc::boxed::Box;
use core::fmt;

use crate::coop::Cooperate;

use super::step::{EventId, Step};
use super::wait::Wait;
use super::{EventLoop, Stats};

/// The code that an event calls.
pub trait Callback<W: Wait>: 'static {
    /// Does a part of the event, or all of it.
    fn call(&mut self, context: &mut Context<'_, W>) -> Step;

    /// Asks the callback to let its event be forgotten; returns whether it may be dropped now.
    /// Otherwise it stays, is called when it is woken or due as before, and says [`Step::Done`] as
    /// soon as it may go. May be asked again.
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
    /// Whether the event was cancelled meanwhile.
    pub(super) cancelled: bool,
    /// Whether the event was woken meanwhile.
    pub(super) woken: bool,
    /// Whether the event was given a source meanwhile, or has one.
    pub(super) has_source: bool,
}

/// The loop, for the callback that it is in.
pub struct Context<'a, W: Wait> {
    pub(super) events: &'a mut EventLoop<W>,
    pub(super) ready: W::Ready,
}

impl<W: Wait> Context<'_, W> {
    /// As [`EventLoop::cancel`]; an event may cancel itself.
    pub fn cancel(&mut self, id: EventId) -> bool {
        self.events.cancel(id)
    }

    /// As [`EventLoop::wake`].
    pub fn wake(&mut self, id: EventId) -> bool {
        self.events.wake(id)
    }

    /// Stops the loop after this callback.
    pub fn stop(&mut self) {
        self.events.stop();
    }

    /// As [`EventLoop::cooperate_by`].
    pub fn cooperate_by(&mut self, tier: Box<dyn Cooperate>) {
        self.events.cooperate_by(tier);
    }

    /// As [`EventLoop::stats`].
    #[must_use]
    pub fn stats(&self) -> &[Stats] {
        self.events.stats()
    }

    /// As [`EventLoop::reset_stats`]; the callback that asks for it is counted when it is back.
    pub fn reset_stats(&mut self) {
        self.events.reset_stats();
    }

    /// The event that is called.
    #[must_use]
    pub fn id(&self) -> EventId {
        EventId(self.current().id)
    }

    /// The words of the event's source since the event was last called.
    #[must_use]
    pub fn ready(&self) -> W::Ready {
        self.ready
    }

    /// The event's release time, if it is called because that has passed. Periodic events should
    /// count from here, and not from when they were called.
    #[must_use]
    pub fn release_ns(&self) -> Option<u64> {
        self.current().release_ns
    }

    /// How long after its release the event was called, in nanoseconds.
    #[must_use]
    pub fn tardiness_ns(&self) -> Option<u64> {
        let Current { release_ns, begun_ns, .. } = self.current();
        release_ns.map(|at| begun_ns.saturating_sub(at))
    }

    /// The time.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        W::now_ns()
    }

    /// Until when the callback may go on: the loop's next release, or that of others that share the
    /// CPU, or the end of the loop's turn, whichever is first; and no longer than half of what a
    /// callback may [take](super::Options::long_ns), so that a loop that has nothing else to do
    /// looks at its sources. Events that are submitted meanwhile count.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.events.until_ns()
    }

    /// How long the callback may go on, in nanoseconds.
    #[must_use]
    pub fn left_ns(&self) -> u64 {
        self.until_ns().saturating_sub(W::now_ns())
    }

    /// Whether the callback is to return soon: because its time is over, or because something more
    /// important is there, also from other threads. To ask costs a reading of the clock.
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
