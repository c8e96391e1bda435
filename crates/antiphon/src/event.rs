//! The event and the latch, and the event count.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_sync::wait;
pub use antiphon_sync::wait::MAX_COUNT;

use crate::fiber::may_be_ready;
use crate::raw::deadline_after;
use crate::select::polled;

/// Tells one thread that something has happened, and resets itself. 192 bytes, so that the two
/// sides don't disturb each other.
///
/// A [set](Self::set) lets one waiter go, or, if nobody waits, the next one that comes. Several
/// that nobody has waited for are one: who goes on sees what was done before each of them.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static ASKED: antiphon::Event = antiphon::Event::new();
/// static ANSWERED: antiphon::Event = antiphon::Event::new();
/// static NUMBER: AtomicU32 = AtomicU32::new(0);
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         ASKED.wait();
///         NUMBER.store(NUMBER.load(Relaxed) * 2, Relaxed);
///         ANSWERED.set();
///     });
///     NUMBER.store(21, Relaxed);
///     ASKED.set();
///     ANSWERED.wait();
/// });
/// assert_eq!(NUMBER.load(Relaxed), 42);
/// ```
///
/// # Signal handlers and forks
///
/// Sleepers are listed under a lock. So no method may be called **in a signal handler**: if that
/// has interrupted the lock's owner, it waits without end. [`shared::Event`](crate::shared::Event)
/// has no lock, and may be set there. And if a thread was in a call while another one **forked**,
/// the next call in the child may wait without end: the child makes a new event, or the parent
/// forks when nobody is in a call. The same holds of [`Latch`], [`EventCount`],
/// [`Broadcast`](crate::Broadcast) and [`Barrier`](crate::Barrier).
#[repr(transparent)]
pub struct Event(wait::Event<Linux>);

impl Event {
    /// An event that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::Event::NEW)
    }

    /// Lets one waiter go, the nearest of the first few, or leaves the event set for the next.
    /// Makes a system call only if that one sleeps.
    #[inline]
    pub fn set(&self) {
        self.0.set();
    }

    /// Blocks until the event is set, and resets it. Spins for a while, and then sleeps.
    #[inline]
    pub fn wait(&self) {
        may_be_ready();
        self.0.wait();
    }

    /// As [`wait`](Self::wait), of a future, which stands in the same queue as threads and fibers.
    /// Dropped before it is ready, the event stays set if it was.
    pub async fn wait_async(&self) {
        polled(self).await;
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`; says whether the event was set. One
    /// that is set is had whatever the timeout.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        may_be_ready();
        self.try_wait() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Resets the event; says whether it was set. Never blocks, and is not ahead of any waiters.
    #[inline]
    pub fn try_wait(&self) -> bool {
        self.0.try_wait()
    }

    /// Resets the event, whether it was set or not.
    pub fn reset(&self) {
        self.0.reset();
    }

    /// Whether the event is set; may be stale at once.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.is_set()
    }

    pub(crate) fn inner(&self) -> &wait::Event<Linux> {
        &self.0
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("is_set", &self.is_set()).finish()
    }
}

/// Opens when so many things are done, once and for all that wait. 24 bytes. One that counts from 1
/// is an event that is set once. Of signal handlers and forks [`Event`] says more; there is a
/// [`shared::Latch`](crate::shared::Latch) without a lock.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// static DONE: antiphon::Latch = antiphon::Latch::new(3);
/// static PARTS: AtomicU32 = AtomicU32::new(0);
///
/// std::thread::scope(|scope| {
///     for _ in 0..3 {
///         scope.spawn(|| {
///             PARTS.fetch_add(1, Relaxed);
///             DONE.count_down(1);
///         });
///     }
///     DONE.wait();
///     assert_eq!(PARTS.load(Relaxed), 3);
/// });
/// ```
#[repr(transparent)]
pub struct Latch(wait::Latch<Linux>);

impl Latch {
    /// A latch that opens when `count` was counted down; it is open if that is 0.
    ///
    /// # Panics
    ///
    /// If it is more than [`MAX_COUNT`].
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(wait::Latch::new(count))
    }

    /// Counts down by `step`, or by what is left if that is less. At zero, all that wait go on.
    #[inline]
    pub fn count_down(&self, step: u32) {
        self.0.count_down(step);
    }

    /// Blocks until the latch is open.
    #[inline]
    pub fn wait(&self) {
        may_be_ready();
        self.0.wait();
    }

    /// As [`wait`](Self::wait), of a future.
    pub async fn wait_async(&self) {
        polled(self).await;
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`; says whether the latch is open.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        may_be_ready();
        self.is_open() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Whether the latch is open. If so, what was done before it was counted down is visible.
    #[inline]
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    pub(crate) fn inner(&self) -> &wait::Latch<Linux> {
        &self.0
    }
}

impl fmt::Debug for Latch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latch").field("left", &self.0.left()).finish()
    }
}

/// To wait for a condition that stands elsewhere, as in a queue without locks. 16 bytes.
///
/// Who waits prepares, looks at the condition once more, and waits or cancels. Who makes the
/// condition true notifies after that; where nobody waits, this is a fence and a load. Of signal
/// handlers and forks [`Event`] says more; [`shared::Broadcast`](crate::shared::Broadcast) serves
/// for conditions too, and has no lock.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
///
/// static READY: AtomicBool = AtomicBool::new(false);
/// static CHANGED: antiphon::EventCount = antiphon::EventCount::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         READY.store(true, Relaxed);
///         CHANGED.notify_all();
///     });
///     loop {
///         let wait = CHANGED.prepare();
///         if READY.load(Relaxed) {
///             break wait.cancel();
///         }
///         wait.wait();
///     }
/// });
/// ```
#[repr(transparent)]
pub struct EventCount(wait::EventCount<Linux>);

/// A wait that was prepared at an [`EventCount`]; cancels it when dropped. One that is forgotten
/// ([`std::mem::forget`]) stays prepared for ever, and takes a notification from others.
#[must_use = "a wait that was prepared is to be waited, or cancelled if there is no need any more"]
pub struct EventKey<'a>(wait::Key<'a, Linux>);

impl EventCount {
    /// Nobody waits.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::EventCount::NEW)
    }

    /// Begins a wait: from now on notifications may be for the caller, who looks at its condition
    /// next.
    pub fn prepare(&self) -> EventKey<'_> {
        EventKey(self.0.prepare())
    }

    /// Notifies one that has prepared, the nearest of the first few, if there are any.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies the first `count` that have prepared, or as many as there are.
    #[inline]
    pub fn notify(&self, count: u32) {
        self.0.notify(count);
    }

    /// Notifies all that have prepared.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn count(&self) -> &wait::EventCount<Linux> {
        &self.0
    }
}

impl EventKey<'_> {
    /// Blocks until notified, or (seldom) for no reason: the caller looks at its condition.
    pub fn wait(self) {
        may_be_ready();
        self.0.wait(None);
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`; says whether it did not.
    pub fn wait_for(self, timeout: Duration) -> bool {
        may_be_ready();
        self.0.wait(Some(deadline_after(timeout)))
    }

    /// Ends the wait, as the condition was true. A notification that has come goes to another.
    pub fn cancel(self) {
        self.0.cancel();
    }
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EventCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCount").finish_non_exhaustive()
    }
}

impl fmt::Debug for EventKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventKey").finish_non_exhaustive()
    }
}
