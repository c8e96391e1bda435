//! The C interface of `antiphon_channel_t`.

use core::ffi::{c_int, c_void};

use antiphon::fiber::may_be_ready;
use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_runtime::channel::{self, NotReceived, NotSent};
use libc::{EAGAIN, EINVAL, EPIPE, ETIMEDOUT, timespec};

use crate::code::timed;
use crate::export::exports;
use crate::item::{Item, Shape};

/// `antiphon_channel_t`.
pub struct Channel {
    pub(crate) items: channel::Channel<Linux, Item>,
    pub(crate) shape: Shape,
}

/// `ANTIPHON_CHANNEL_MAX`.
const MOST: usize = 1 << 20;

impl Channel {
    fn send(&self, item: Item, deadline: Option<Deadline>) -> c_int {
        may_be_ready();
        sent(self.items.send(item, deadline), ETIMEDOUT)
    }

    /// # Safety
    ///
    /// `into` has room for an item.
    unsafe fn recv(&self, into: *mut c_void, deadline: Option<Deadline>) -> c_int {
        may_be_ready();
        // SAFETY: the caller's promise.
        unsafe { self.received(self.items.recv(deadline), into, ETIMEDOUT) }
    }

    /// Copies the item out and returns the code of a receive: `empty` if there was no item.
    ///
    /// # Safety
    ///
    /// `into` has room for an item.
    pub(crate) unsafe fn received(
        &self,
        received: Result<Item, NotReceived>,
        into: *mut c_void,
        empty: c_int,
    ) -> c_int {
        match received {
            Ok(item) => {
                // SAFETY: the caller's promise; items were copied in by this shape.
                unsafe { self.shape.copy_out(item, into) };
                0
            }
            Err(NotReceived::Empty) => empty,
            Err(NotReceived::Closed) => EPIPE,
        }
    }
}

/// Returns the code of a send: `full` if there was no room.
fn sent(sent: Result<(), NotSent<Item>>, full: c_int) -> c_int {
    match sent {
        Ok(()) => 0,
        Err(NotSent::Full(_)) => full,
        Err(NotSent::Closed(_)) => EPIPE,
    }
}

exports! {
    /// Makes a channel.
    fn antiphon_channel_create(
        channel: &mut *mut Channel,
        item_bytes: usize,
        room: usize,
    ) -> c_int {
        let Some(shape) = Shape::new(item_bytes).filter(|_| (1..=MOST).contains(&room)) else {
            return EINVAL;
        };
        *channel = Box::into_raw(Box::new(Channel { items: channel::Channel::new(room), shape }));
        0
    }

    /// Frees the channel and the items in it.
    fn antiphon_channel_destroy(channel: *mut Channel) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(channel) });
    }

    /// Sends an item; waits for room.
    fn antiphon_channel_send(channel: &Channel, item: *const c_void) -> c_int {
        // SAFETY: the caller passes an item of this size.
        channel.send(unsafe { channel.shape.copy_in(item) }, None)
    }

    /// Sends an item if there is room.
    fn antiphon_channel_trysend(channel: &Channel, item: *const c_void) -> c_int {
        // SAFETY: the caller passes an item of this size.
        sent(channel.items.try_send(unsafe { channel.shape.copy_in(item) }), EAGAIN)
    }

    /// Sends an item; waits for room, or gives up at the deadline.
    fn antiphon_channel_timedsend(
        channel: &Channel,
        item: *const c_void,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller passes an item of this size.
            channel.send(unsafe { channel.shape.copy_in(item) }, Some(deadline))
        })
    }

    /// Receives an item; waits for one.
    fn antiphon_channel_recv(channel: &Channel, item: *mut c_void) -> c_int {
        // SAFETY: the caller passes memory for one value.
        unsafe { channel.recv(item, None) }
    }

    /// Receives an item if there is one.
    fn antiphon_channel_tryrecv(channel: &Channel, item: *mut c_void) -> c_int {
        // SAFETY: the caller passes memory for one value.
        unsafe { channel.received(channel.items.try_recv(), item, EAGAIN) }
    }

    /// Receives an item; waits for one, or gives up at the deadline.
    fn antiphon_channel_timedrecv(
        channel: &Channel,
        item: *mut c_void,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        // SAFETY: the caller passes memory for one value.
        timed(clock, until, |deadline| unsafe { channel.recv(item, Some(deadline)) })
    }

    /// Closes the channel: later sends fail.
    fn antiphon_channel_close(channel: &Channel) {
        channel.items.close();
    }

    /// Returns the number of items.
    fn antiphon_channel_len(channel: &Channel) -> usize {
        channel.items.len()
    }

    /// Returns the number of items for which there is room.
    fn antiphon_channel_room(channel: &Channel) -> usize {
        channel.items.room()
    }
}
