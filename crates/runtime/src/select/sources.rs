//! The events that may be waited for together with others.

use core::cell::Cell;
use core::fmt;

use antiphon_platform::{Deadline, Platform};
use antiphon_sync::nap;
use antiphon_sync::wait::{Event, EventCount, Latch, Several};

use super::{Source, Stand};
use crate::channel::{Channel, NotReceived, NotSent};
use crate::task::Handle;

/// A value from a channel, or the news that it is closed.
pub struct Receives<'a, P: Platform, T> {
    channel: &'a Channel<P, T>,
    received: Cell<Option<Result<T, NotReceived>>>,
}

impl<'a, P: Platform, T> Receives<'a, P, T> {
    /// Creates a source of values from `channel`.
    pub fn new(channel: &'a Channel<P, T>) -> Self {
        Self { channel, received: Cell::new(None) }
    }

    /// Returns the received value, if this source was chosen; or that the channel is closed.
    pub fn into_received(self) -> Option<Result<T, NotReceived>> {
        self.received.into_inner()
    }
}

impl<P: Platform, T: Send> Source<P> for Receives<'_, P, T> {
    fn try_take(&self) -> bool {
        let received = self.channel.try_recv();
        let there = !matches!(received, Err(NotReceived::Empty));
        if there {
            self.received.set(Some(received));
        }
        there
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        Some(Stand::looks(self.channel.stand_to_receive(several)))
    }
}

/// Room in a channel for a value, or the news that it is closed.
pub struct Sends<'a, P: Platform, T> {
    channel: &'a Channel<P, T>,
    value: &'a Cell<Option<T>>,
    closed: Cell<bool>,
}

// SAFETY: the cell has a value that is `Send`, and was borrowed mutably: no other thread has it.
// The channel of such values is `Sync`.
unsafe impl<P: Platform, T: Send> Send for Sends<'_, P, T> {}

impl<'a, P: Platform, T> Sends<'a, P, T> {
    /// Creates a source of room in `channel`. If the value is not sent, it stays in `value`; if
    /// there is no value, there is never room.
    pub fn new(channel: &'a Channel<P, T>, value: &'a mut Option<T>) -> Self {
        Self { channel, value: Cell::from_mut(value), closed: Cell::new(false) }
    }

    /// Returns whether the source was chosen because the channel is closed.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.closed.get()
    }
}

impl<P: Platform, T: Send> Source<P> for Sends<'_, P, T> {
    fn try_take(&self) -> bool {
        let Some(value) = self.value.take() else { return false };
        let Err(why) = self.channel.try_send(value) else { return true };
        self.closed.set(matches!(why, NotSent::Closed(_)));
        let (NotSent::Full(back) | NotSent::Closed(back)) = why;
        self.value.set(Some(back));
        self.closed.get()
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        Some(Stand::looks(self.channel.stand_to_send(several)))
    }
}

/// An event that is set. A waiter for several events may be handed a set that it does not use, and
/// then sets it again: meanwhile no other waiter has it.
impl<P: Platform> Source<P> for Event<P> {
    fn try_take(&self) -> bool {
        self.try_wait()
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        Self::stand(self, several).map(Stand::had)
    }
}

/// A latch that is open.
impl<P: Platform> Source<P> for Latch<P> {
    fn try_take(&self) -> bool {
        self.is_open()
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        Self::stand(self, several).map(Stand::had)
    }
}

/// A time that has passed.
impl<P: Platform> Source<P> for Deadline {
    fn try_take(&self) -> bool {
        nap::passed::<P>(Some(*self))
    }

    fn stand<'a>(&'a self, _: &'a Several<P>) -> Option<Stand<'a, P>> {
        Some(Stand::timed())
    }

    fn deadline(&self) -> Option<Deadline> {
        Some(*self)
    }
}

/// A condition whose changes an event count announces.
pub struct Holds<'a, P: Platform, F> {
    count: &'a EventCount<P>,
    holds: F,
}

impl<'a, P: Platform, F: Fn() -> bool> Holds<'a, P, F> {
    /// Creates a source of a condition. If `holds` takes something when it returns true, that is
    /// taken.
    pub fn new(count: &'a EventCount<P>, holds: F) -> Self {
        Self { count, holds }
    }
}

impl<P: Platform, F: Fn() -> bool> Source<P> for Holds<'_, P, F> {
    fn try_take(&self) -> bool {
        (self.holds)()
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        Some(Stand::looks(self.count.stand(several)))
    }
}

/// The value that a task returns, or that is promised.
pub struct Awaits<'a, P: Platform, T> {
    /// The handle, which this source alone uses for `'a`.
    handle: &'a Handle<P, T>,
    returned: Cell<Option<T>>,
}

impl<'a, P: Platform, T> Awaits<'a, P, T> {
    /// Creates a source from a handle, which has no result left if this source was chosen.
    pub fn new(handle: &'a mut Handle<P, T>) -> Self {
        handle.unhook();
        Self { handle, returned: Cell::new(None) }
    }

    /// Returns the result, if this source was chosen; `None` if there was none: the task has
    /// panicked, or was dropped.
    pub fn into_returned(self) -> Option<T> {
        self.returned.into_inner()
    }
}

impl<P: Platform, T> Source<P> for Awaits<'_, P, T> {
    fn try_take(&self) -> bool {
        let done = self.handle.is_done();
        if done {
            // SAFETY: `new` had an exclusive reference for `'a`.
            self.returned.set(unsafe { self.handle.take_shared() });
        }
        done
    }

    fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Stand<'a, P>> {
        Some(Stand::rung(self.handle.awaited_shared(), several))
    }
}

macro_rules! debug {
    ($($name:ident<$($of:ident),*>),*) => {$(
        impl<P: Platform, $($of),*> fmt::Debug for $name<'_, P, $($of),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}

debug!(Receives<T>, Sends<T>, Holds<F>, Awaits<T>);
