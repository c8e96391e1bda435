//! The access that other threads have to a loop.

use alloc::sync::Arc;
use core::fmt;

use super::EventLoop;
use super::agenda::Entry;
use super::context::{Callback, Context};
use super::event::Event;
use super::inbox::{Post, Shared};
use super::name::Name;
use super::step::EventId;
use super::wait::Wait;

/// A handle by which other threads submit events to a loop. A clone is for the same loop. While
/// there are handles, a loop that has nothing to do waits for their events.
pub struct Handle<W: Wait>(Arc<Shared<W>>);

/// A lookout by which other threads see what a loop is doing. It does not keep the loop running.
pub struct Lookout<W: Wait>(Arc<Shared<W>>);

/// The error for a loop that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// A callback that a loop was seen running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The name of the event; `None` if the loop has more than 65 534 names.
    pub name: Option<Name>,
    /// How long its callback has been running, in nanoseconds.
    pub for_ns: u64,
    /// When the callback began, by the loop's clock: two calls have different times.
    pub since_ns: u64,
}

impl<W: Wait> EventLoop<W> {
    /// Returns a handle for other threads. While there are handles, the loop waits for their
    /// events.
    #[must_use]
    pub fn handle(&self) -> Handle<W> {
        Handle::new(self.shared.clone())
    }

    /// Returns a lookout for threads that check that no callback takes too long.
    #[must_use]
    pub fn lookout(&self) -> Lookout<W> {
        Lookout::new(self.shared.clone())
    }
}

impl<W: Wait> Context<'_, W> {
    /// Returns a handle for other threads.
    #[must_use]
    pub fn handle(&self) -> Handle<W> {
        self.events.handle()
    }

    /// Returns a lookout for threads that check that no callback takes too long.
    #[must_use]
    pub fn lookout(&self) -> Lookout<W> {
        self.events.lookout()
    }
}

impl<W: Wait> Handle<W> {
    pub(super) fn new(shared: Arc<Shared<W>>) -> Self {
        shared.enter();
        Self(shared)
    }

    /// Submits an event to the loop; see [`EventLoop::submit`](super::EventLoop::submit). Does not
    /// block; makes a system call if the loop sleeps, to wake it.
    ///
    /// The caller's earlier writes happen before the event.
    ///
    /// # Errors
    ///
    /// If the loop has been dropped.
    pub fn submit<C: Callback<W> + Send>(&self, event: Event<W, C>) -> Result<EventId, Gone> {
        let id = self.0.number();
        let Event { due, name, callback, .. } = event;
        let entry = Entry::new(callback);
        self.post(Post::Submit { id, due, name, entry }).map(|()| EventId(id))
    }

    /// Makes the loop cancel an event, if it still exists when the loop processes this.
    ///
    /// # Errors
    ///
    /// If the loop has been dropped.
    pub fn cancel(&self, id: EventId) -> Result<(), Gone> {
        self.post(Post::Cancel(id.0))
    }

    /// Wakes an event; see [`EventLoop::wake`](super::EventLoop::wake).
    ///
    /// # Errors
    ///
    /// If the loop has been dropped.
    pub fn wake(&self, id: EventId) -> Result<(), Gone> {
        self.post(Post::Wake { id: id.0, importance: None })
    }

    /// Stops the loop after the callback that it is in.
    ///
    /// # Errors
    ///
    /// If the loop has been dropped.
    pub fn stop(&self) -> Result<(), Gone> {
        self.post(Post::Stop)
    }

    /// Like [`wake`](Self::wake), with the given importance, or a lesser one with which the event
    /// is queued already. Returns whether the loop was asleep.
    pub(super) fn raise(&self, id: EventId, importance: u64) -> Result<bool, Gone> {
        self.0.post(Post::Wake { id: id.0, importance: Some(importance) }).map_err(|_| Gone)
    }

    fn post(&self, post: Post<W>) -> Result<(), Gone> {
        self.0.post(post).map(drop).map_err(|_| Gone)
    }
}

impl<W: Wait> Lookout<W> {
    pub(super) const fn new(shared: Arc<Shared<W>>) -> Self {
        Self(shared)
    }

    /// Returns the callback that the loop is running, if there is one.
    #[must_use]
    pub fn sight(&self) -> Option<Sighting> {
        let seen = self.0.sight.look()?;
        // Read after `look`: what was seen began before.
        let now_ns = W::now_ns();
        let for_ns = seen.for_ns(now_ns);
        let name = seen.kind().and_then(|kind| self.0.name(kind));
        Some(Sighting { name, for_ns, since_ns: now_ns.wrapping_sub(for_ns) })
    }
}

impl<W: Wait> Clone for Handle<W> {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl<W: Wait> Drop for Handle<W> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl<W: Wait> fmt::Debug for Handle<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl<W: Wait> fmt::Debug for Lookout<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookout")
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the event loop is gone")
    }
}

impl core::error::Error for Gone {}
