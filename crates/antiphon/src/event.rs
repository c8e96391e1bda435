//! The event, the latch and the event count.

use std::fmt;
use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::select::Holds;
use antiphon_sync::wait;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;
use crate::select::{And, Select, Then, as_inner, polled};

/// Wakes one thread, and resets itself (an auto-reset event). It takes 192 bytes, so that the two
/// sides do not share a cache line.
///
/// A [set](Self::set) releases one waiter or, if there is none, the next thread that arrives. Sets
/// that happen while no thread waits count as one: the thread that takes the event sees all writes
/// from before each of them.
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
/// The list of sleepers is guarded by a lock. So no method may be called **in a signal handler**:
/// if the handler has interrupted the owner of that lock, the call never returns.
/// The event of the crate `antiphon-shared` has no such lock, and may be set in a handler. And if a
/// thread was in a call while another thread **forked**, the next call in the child may never
/// return: make a new event in the child, or fork while no thread is in a call. The same holds for
/// [`Latch`], [`EventCount`], [`Broadcast`](crate::Broadcast) and [`Barrier`](crate::Barrier).
#[repr(transparent)]
pub struct Event(wait::Event<Linux>);

impl Event {
    /// Creates an event that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::Event::NEW)
    }

    /// Releases one waiter (the nearest of the first few), or leaves the event set for the next
    /// thread that waits. Makes a system call only if the waiter sleeps.
    #[inline]
    pub fn set(&self) {
        self.0.set();
    }

    /// Blocks until the event is set, and resets it. Spins for a while, then sleeps.
    #[inline]
    pub fn wait(&self) {
        may_be_ready();
        self.0.wait();
    }

    /// Waits like [`wait`](Self::wait), as a future. The future stands in the same queue as threads
    /// and fibers. If it is dropped before it is ready, an event that was set stays set.
    pub async fn wait_async(&self) {
        polled(self).await;
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns whether the event was
    /// set. An event that is already set is taken whatever the timeout.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        may_be_ready();
        self.try_wait() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Resets the event, and returns whether it was set. Never blocks, and never overtakes a
    /// waiter.
    #[inline]
    pub fn try_wait(&self) -> bool {
        self.0.try_wait()
    }

    /// Resets the event, whether it was set or not.
    pub fn reset(&self) {
        self.0.reset();
    }

    /// Returns whether the event is set. The answer may be out of date at once.
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

/// A latch opens once, when it has been counted down to zero, and then stays open. It takes 24
/// bytes. A latch that counts from 1 is an event that is set once. For signal handlers and forks
/// see [`Event`]; the latch of the crate `antiphon-shared` has no lock.
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
    /// The largest count.
    pub const MAX_COUNT: u32 = wait::MAX_COUNT;

    /// Creates a latch that opens once `count` has been counted down; it is open if `count` is 0.
    ///
    /// # Panics
    ///
    /// If `count` is above [`MAX_COUNT`](Self::MAX_COUNT).
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self(wait::Latch::new(count))
    }

    /// Counts down by `step`, or by the rest if that is less. At zero, all waiters are released.
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

    /// Waits like [`wait`](Self::wait), as a future.
    pub async fn wait_async(&self) {
        polled(self).await;
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns whether the latch is
    /// open.
    pub fn wait_for(&self, timeout: Duration) -> bool {
        may_be_ready();
        self.is_open() || self.0.wait_until(Some(deadline_after(timeout)))
    }

    /// Returns whether the latch is open. If so, all writes from before the counts are visible.
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

/// Waits for a condition that is stored elsewhere, for example in a queue without locks (an event
/// count). It takes 16 bytes.
///
/// The waiter prepares, checks the condition again, and then waits or cancels. The thread that
/// makes the condition true notifies afterwards; if there is no waiter, this costs a fence and a
/// load. For signal handlers and forks see [`Event`]; the broadcast of the crate `antiphon-shared`
/// also serves for conditions, and has no lock.
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

/// A wait that was prepared at an [`EventCount`]; dropping it cancels the wait. A key that is
/// forgotten ([`std::mem::forget`]) stays prepared for ever, and takes a notification from another
/// waiter.
#[must_use = "a prepared wait takes notifications: wait by it, or cancel it"]
pub struct EventKey<'a>(wait::Key<'a, Linux>);

impl EventCount {
    /// Creates an event count without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self(wait::EventCount::NEW)
    }

    /// Begins a wait. From now on a notification may go to the caller, which must check its
    /// condition next.
    pub fn prepare(&self) -> EventKey<'_> {
        EventKey(self.0.prepare())
    }

    /// Notifies one prepared waiter (the nearest of the first few), if there is one.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies the first `count` prepared waiters, or all of them if there are fewer.
    #[inline]
    pub fn notify(&self, count: u32) {
        self.0.notify(count);
    }

    /// Notifies all prepared waiters.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub(crate) fn count(&self) -> &wait::EventCount<Linux> {
        &self.0
    }
}

impl EventKey<'_> {
    /// Blocks until notified. In rare cases it returns spuriously: the caller must check its
    /// condition.
    pub fn wait(self) {
        may_be_ready();
        self.0.wait(None);
    }

    /// Waits like [`wait`](Self::wait), but gives up after `timeout`. Returns `false` if it gave
    /// up.
    pub fn wait_for(self, timeout: Duration) -> bool {
        may_be_ready();
        self.0.wait(Some(deadline_after(timeout)))
    }

    /// Ends the wait, because the condition is true. A notification that has arrived goes to
    /// another waiter.
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

impl<'a, R, C> Select<'a, R, C> {
    /// Adds a case that waits until the event is set, and resets it.
    pub fn event<F>(self, event: &Event, then: F) -> Select<'a, R, And<C, &Event, F>>
    where
        F: FnOnce() -> R,
    {
        self.and(event, then)
    }

    /// Adds a case that waits until the latch is open.
    pub fn latch<F>(self, latch: &Latch, then: F) -> Select<'a, R, And<C, &Latch, F>>
    where
        F: FnOnce() -> R,
    {
        self.and(latch, then)
    }

    /// Adds a case that waits until `condition` returns `true`. The thread that makes it true must
    /// notify `count`. If the condition returns `true`, this case is chosen: so the condition may
    /// take a value or a permit.
    ///
    /// ```
    /// use antiphon::{EventCount, select::Select};
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    ///
    /// let (left, changed) = (AtomicU32::new(3), EventCount::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         for _ in 0..3 {
    ///             left.fetch_sub(1, Relaxed);
    ///             changed.notify_all();
    ///         }
    ///     });
    ///     Select::new().when(&changed, || left.load(Relaxed) == 0, || ()).wait();
    /// });
    /// ```
    pub fn when<W, F>(
        self,
        count: &EventCount,
        condition: W,
        then: F,
    ) -> Select<'a, R, And<C, Holds<'_, Linux, W>, F>>
    where
        W: Fn() -> bool,
        F: FnOnce() -> R,
    {
        self.and(Holds::new(count.count(), condition), then)
    }
}

as_inner!(Event, Latch);

impl<R, W, F: FnOnce() -> R> Then<R, F> for Holds<'_, Linux, W> {
    fn then(self, then: F) -> R {
        then()
    }
}
