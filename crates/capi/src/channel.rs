//! `antiphon_channel_t`.

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
        // SAFETY: the caller's.
        unsafe { self.received(self.items.recv(deadline), into, ETIMEDOUT) }
    }

    /// The code of a receive: `empty` if there was nothing. Copies the item out.
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
                // SAFETY: the caller's; items come in by this shape.
                unsafe { self.shape.copy_out(item, into) };
                0
            }
            Err(NotReceived::Empty) => empty,
            Err(NotReceived::Closed) => EPIPE,
        }
    }
}

/// The code of a send: `full` if there was no room.
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

    /// Lets go of the channel, with the items in it.
    fn antiphon_channel_destroy(channel: *mut Channel) {
        // SAFETY: made above, and not used from now on.
        drop(unsafe { Box::from_raw(channel) });
    }

    /// Sends an item; waits for room.
    fn antiphon_channel_send(channel: &Channel, item: *const c_void) -> c_int {
        // SAFETY: the caller's item.
        channel.send(unsafe { channel.shape.copy_in(item) }, None)
    }

    /// Sends an item if there is room.
    fn antiphon_channel_trysend(channel: &Channel, item: *const c_void) -> c_int {
        // SAFETY: the caller's item.
        sent(channel.items.try_send(unsafe { channel.shape.copy_in(item) }), EAGAIN)
    }

    /// Sends an item; waits for room, or gives up.
    fn antiphon_channel_timedsend(
        channel: &Channel,
        item: *const c_void,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            // SAFETY: the caller's item.
            channel.send(unsafe { channel.shape.copy_in(item) }, Some(deadline))
        })
    }

    /// Receives an item; waits for one.
    fn antiphon_channel_recv(channel: &Channel, item: *mut c_void) -> c_int {
        // SAFETY: the caller's memory for one.
        unsafe { channel.recv(item, None) }
    }

    /// Receives an item if there is one.
    fn antiphon_channel_tryrecv(channel: &Channel, item: *mut c_void) -> c_int {
        // SAFETY: the caller's memory for one.
        unsafe { channel.received(channel.items.try_recv(), item, EAGAIN) }
    }

    /// Receives an item; waits for one, or gives up.
    fn antiphon_channel_timedrecv(
        channel: &Channel,
        item: *mut c_void,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        // SAFETY: the caller's memory for one.
        timed(clock, until, |deadline| unsafe { channel.recv(item, Some(deadline)) })
    }

    /// Closes the channel: nothing is sent any more.
    fn antiphon_channel_close(channel: &Channel) {
        channel.items.close();
    }

    /// How many items there are.
    fn antiphon_channel_len(channel: &Channel) -> usize {
        channel.items.len()
    }

    /// The number of items for which there is room.
    fn antiphon_channel_room(channel: &Channel) -> usize {
        channel.items.room()
    }
}
