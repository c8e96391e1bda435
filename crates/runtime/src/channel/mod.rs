//! Bounded channels: values from senders to receivers, in order.
//!
//! A sender waits while there is no room, and a receiver while there is no value. On Linux a thread
//! then sleeps, and a fiber is suspended.
//!
//! - CHAN-1 (no lost wake): a thread that puts a value in, or takes one out, notifies the other
//!   side afterwards; a waiter announces itself before it checks once more (EC-1).
//! - CHAN-2: values that were sent before the channel was closed are received. A receiver that
//!   finds it closed checks once more, and waits for senders in the middle of a send; the receiver
//!   that takes the last value notifies the others.
//! - CHAN-3 (no lost wake behind a slot): if a sender is stopped in the middle of a send, receivers
//!   that are notified of later values find none, and wait again. So a receiver that takes a value
//!   out notifies another one if the next value is there; and likewise for room. Both sides have a
//!   fence between what they write, an end of the ring or a slot, and what they read of the
//!   other's: either the receiver sees the next value, or the waiter that was notified of that sees
//!   that the end has moved.

mod ring;

use core::sync::atomic::Ordering::{Acquire, Release};
use core::{fmt, mem};

use antiphon_platform::{Atomic, Deadline, Platform};
use antiphon_sync::nap;
use antiphon_sync::wait::{EventCount, Place, Several};

use ring::Ring;

/// A channel of values, without its ends: the caller decides which threads may send, and which
/// receive.
pub struct Channel<P: Platform, T> {
    ring: Ring<P, T>,
    /// Waiters for a value (`receivers`), and for room (`senders`).
    receivers: EventCount<P>,
    senders: EventCount<P>,
    /// Not 0: no more values are sent.
    closed: P::U32,
}

/// The reason why a value was not sent, with the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NotSent<T> {
    /// There is no room, or there was none until the deadline.
    Full(T),
    /// The channel is closed.
    Closed(T),
}

/// The reason why no value was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReceived {
    /// There is no value, or there was none until the deadline.
    Empty,
    /// There is no value, and the channel is closed.
    Closed,
}

impl<P: Platform, T: Send> Channel<P, T> {
    /// Creates a channel with room for `room` values, rounded up to a power of two.
    ///
    /// # Panics
    ///
    /// If `room` is 0, or more than 2³¹.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            ring: Ring::new(room),
            receivers: EventCount::NEW,
            senders: EventCount::NEW,
            closed: P::U32::ZERO,
        }
    }

    /// Sends a value. Does not block.
    ///
    /// # Errors
    ///
    /// The value, if there is no room, or the channel is closed.
    pub fn try_send(&self, value: T) -> Result<(), NotSent<T>> {
        if self.is_closed() {
            return Err(NotSent::Closed(value));
        }
        self.ring.push(value).map_err(NotSent::Full)?;
        // CHAN-1. Its fence also serves STAGE-1.
        self.receivers.notify_one();
        // CHAN-3: after the fence of the notification.
        if self.senders.has_waiters() && self.ring.has_room() {
            self.senders.notify_one();
        }
        Ok(())
    }

    /// Sends a value when there is room; waits for room, until the deadline if there is one.
    ///
    /// # Errors
    ///
    /// The value, if the deadline has passed, or the channel is closed.
    pub fn send(&self, mut value: T, deadline: Option<Deadline>) -> Result<(), NotSent<T>> {
        let mut gave_way = false;
        loop {
            match self.try_send(value) {
                Err(NotSent::Full(back)) => value = back,
                done => return done,
            }
            if gives_way::<P>(&mut gave_way) {
                continue;
            }
            let wait = self.senders.prepare();
            // CHAN-1.
            match self.try_send(value) {
                Err(NotSent::Full(back)) if !nap::passed::<P>(deadline) => value = back,
                done => return done,
            }
            wait.wait(deadline);
        }
    }

    /// Receives a value. Does not block.
    ///
    /// # Errors
    ///
    /// If there is no value: even if others have sent some, while a sender that began before them
    /// is in the middle of a send. Its value comes first.
    pub fn try_recv(&self) -> Result<T, NotReceived> {
        let value = match self.ring.pop() {
            Some(value) => value,
            None if !self.is_closed() => return Err(NotReceived::Empty),
            // CHAN-2.
            None => match self.ring.pop() {
                Some(value) => value,
                None if self.is_empty() => return Err(NotReceived::Closed),
                None => return Err(NotReceived::Empty),
            },
        };
        // CHAN-1.
        self.senders.notify_one();
        if self.receivers.has_waiters() {
            self.pass_on();
        }
        Ok(value)
    }

    /// Notifies other receivers, which may have waited for the caller: after the fence of a
    /// notification.
    #[cold]
    fn pass_on(&self) {
        if self.ring.has_next() {
            // CHAN-3.
            self.receivers.notify_one();
        } else if self.is_closed() && self.is_empty() {
            // CHAN-2.
            self.receivers.notify_all();
        }
    }

    /// Receives a value; waits for one, until the deadline if there is one.
    ///
    /// # Errors
    ///
    /// If the deadline has passed; or if there is no value, and the channel is closed.
    pub fn recv(&self, deadline: Option<Deadline>) -> Result<T, NotReceived> {
        let mut gave_way = false;
        loop {
            match self.try_recv() {
                Err(NotReceived::Empty) => {}
                done => return done,
            }
            if gives_way::<P>(&mut gave_way) {
                continue;
            }
            let wait = self.receivers.prepare();
            // CHAN-1.
            match self.try_recv() {
                Err(NotReceived::Empty) if !nap::passed::<P>(deadline) => {}
                done => return done,
            }
            wait.wait(deadline);
        }
    }

    /// Begins a wait for a value, among several waits (CHAN-1: the caller tries to receive next).
    pub(crate) fn stand_to_receive<'a>(&'a self, several: &'a Several<P>) -> Place<'a, P> {
        self.receivers.stand(several)
    }

    /// Begins a wait for room, among several waits (CHAN-1: the caller tries to send next).
    pub(crate) fn stand_to_send<'a>(&'a self, several: &'a Several<P>) -> Place<'a, P> {
        self.senders.stand(several)
    }

    /// Closes the channel: no more values are sent; those that were sent are received. Wakes all
    /// waiters.
    pub fn close(&self) {
        // Release: CHAN-2, what was sent before; pairs with the acquire in `is_closed`.
        self.closed.store(1, Release);
        self.receivers.notify_all();
        self.senders.notify_all();
    }

    /// Returns whether the channel is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: CHAN-2; pairs with the release in `close`.
        self.closed.load(Acquire) != 0
    }
}

impl<P: Platform, T> Channel<P, T> {
    /// Returns whether a value can be received. A value behind one whose send is not complete does
    /// not count.
    #[must_use]
    pub fn has_next(&self) -> bool {
        self.ring.has_next()
    }

    /// Returns the number of values; may be stale at once.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.count()
    }

    /// Returns whether there are no values; may be stale at once.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the capacity: the number of values that there is room for in all.
    #[must_use]
    pub fn room(&self) -> usize {
        self.ring.room()
    }
}

/// Lets other fibers of the caller's thread run before a wait is prepared, once per call; returns
/// whether it did, and the caller must check again. If the other end of the channel is a fiber of
/// the same thread, this costs a tenth of a wait and a wake-up.
fn gives_way<P: Platform>(gave_way: &mut bool) -> bool {
    !mem::replace(gave_way, true) && P::give_way()
}

impl<P: Platform, T> fmt::Debug for Channel<P, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("len", &self.len())
            .field("room", &self.room())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for NotSent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Closed(_) => "Closed",
        })
    }
}
