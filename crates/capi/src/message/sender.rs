//! The C interface of `antiphon_sender_t`, the senders' end.

use core::ffi::c_int;

use antiphon_linux::Linux;
use antiphon_runtime::message::{self, ActionId, NotSignalled, SignalId};
use libc::{EINVAL, ENOENT, EPIPE, ETIMEDOUT, timespec};

use super::mailbox::Sleep;
use super::{Message, posted, refused};
use crate::cancel::uncancelled;
use crate::code::timed;
use crate::export::exports;

/// `antiphon_sender_t`.
pub struct Sender(pub(super) message::Sender<Linux, Sleep>);

exports! {
    /// Frees a sender.
    fn antiphon_sender_destroy(sender: *mut Sender) {
        // SAFETY: created by this library for a mailbox, and not used after this call.
        let sender = unsafe { Box::from_raw(sender) };
        uncancelled(|| drop(sender));
    }

    /// Posts a message.
    fn antiphon_sender_post(sender: &Sender, message: &Message) -> c_int {
        posted(sender.0.post(message.get()))
    }

    /// Posts a message, and waits for room.
    fn antiphon_sender_post_wait(sender: &Sender, message: &Message) -> c_int {
        posted(sender.0.post_wait(message.get(), None))
    }

    /// Posts a message, and waits for room, or gives up at the deadline.
    fn antiphon_sender_post_timedwait(
        sender: &Sender,
        message: &Message,
        clock: c_int,
        until: &timespec,
    ) -> c_int {
        timed(clock, until, |deadline| {
            let posted = sender.0.post_wait(message.get(), Some(deadline));
            posted.map_or_else(|why| refused(why, ETIMEDOUT), |()| 0)
        })
    }

    /// Makes the owner run an action at least once.
    fn antiphon_sender_signal(sender: &Sender, id: u32) -> c_int {
        let Some(signal) = SignalId::from_action(ActionId::from_bits(id)) else { return EINVAL };
        match sender.0.signal(signal) {
            Ok(()) => 0,
            Err(NotSignalled::Unregistered) => ENOENT,
            Err(NotSignalled::Closed) => EPIPE,
        }
    }
}
