//! `antiphon_group_t`: several mailboxes, by socket.

use core::ffi::{c_int, c_void};

use antiphon_linux::Linux;
use antiphon_platform::{SocketId, Topology as _};
use antiphon_runtime::message::{self, Missed};

use super::mailbox::Sleep;
use super::sender::Sender;
use super::{Message, posted};
use crate::export::exports;

/// `antiphon_group_t`.
pub struct Group(message::Group<Linux, Sleep>);

type Tell = Option<unsafe extern "C" fn(*mut c_void, usize, c_int)>;

/// Reports which members were missed, and returns their number.
///
/// # Safety
///
/// `tell` may be called with the context.
unsafe fn missed(result: Result<(), Vec<Missed>>, tell: Tell, context: *mut c_void) -> usize {
    let missed = result.err().unwrap_or_default();
    if let Some(tell) = tell {
        for Missed { member, why } in &missed {
            // SAFETY: the caller's promise.
            unsafe { tell(context, *member, posted(Err(*why))) }
        }
    }
    missed.len()
}

exports! {
    /// Makes a group without members.
    fn antiphon_group_create() -> *mut Group {
        Box::into_raw(Box::new(Group(message::Group::new())))
    }

    /// Frees a group.
    fn antiphon_group_destroy(group: *mut Group) {
        // SAFETY: created by this library, and not used after this call.
        drop(unsafe { Box::from_raw(group) });
    }

    /// Adds a mailbox.
    fn antiphon_group_add(group: &mut Group, socket: u32, sender: &Sender) {
        group.0.add(SocketId(socket), sender.0.clone());
    }

    /// Posts a message to all members.
    fn antiphon_group_broadcast(
        group: &Group,
        message: &Message,
        tell: Tell,
        context: *mut c_void,
    ) -> usize {
        // SAFETY: the caller's function, with the context that the caller passes for it.
        unsafe { missed(group.0.broadcast(message.get()), tell, context) }
    }

    /// Posts a message to all members on a socket.
    fn antiphon_group_multicast(
        group: &Group,
        socket: u32,
        message: &Message,
        tell: Tell,
        context: *mut c_void,
    ) -> usize {
        // SAFETY: the caller's function, with the context that the caller passes for it.
        unsafe { missed(group.0.multicast(SocketId(socket), message.get()), tell, context) }
    }

    /// Returns the socket of the caller's CPU.
    fn antiphon_current_socket() -> u32 {
        Linux::socket().0
    }
}
