//! Active messages: tables of actions, mailboxes, their senders, and groups of those.
//!
//! | file | type | behind the pointer |
//! |---|---|---|
//! | `actions` | `antiphon_actions_t` | the table; it lives while a mailbox uses it |
//! | `mailbox` | `antiphon_mailbox_t` | the owner's end, behind a mutex that no thread waits for |
//! | `sender` | `antiphon_sender_t` | the senders' end; it outlives the mailbox |
//! | `group` | `antiphon_group_t` | senders, by socket |
//!
//! Calls that Rust's borrows would refuse get an error code: two threads that poll one mailbox, and
//! an action that polls the mailbox it runs for, find the mutex locked.

mod actions;
mod group;
mod mailbox;
mod sender;

use antiphon_runtime::message::{ActionId, NotPosted};
use libc::{EAGAIN, EINVAL, EPIPE};

pub(crate) use mailbox::Delivered;

/// `antiphon_message_t`.
#[repr(C)]
pub struct Message {
    action: u32,
    kept: u32,
    payload: [u64; 3],
}

impl Message {
    fn of(message: antiphon_runtime::message::Message) -> Self {
        Self { action: message.action.bits(), kept: 0, payload: message.payload }
    }

    fn get(&self) -> antiphon_runtime::message::Message {
        let action = ActionId::from_bits(self.action);
        antiphon_runtime::message::Message { action, payload: self.payload }
    }
}

/// Returns the code of a message that was not posted: `full` if there was no room.
fn refused(why: NotPosted, full: core::ffi::c_int) -> core::ffi::c_int {
    match why {
        NotPosted::Full(_) => full,
        NotPosted::Closed(_) => EPIPE,
        NotPosted::ForSignals(_) => EINVAL,
    }
}

/// Returns the code of a post that does not wait.
fn posted(posted: Result<(), NotPosted>) -> core::ffi::c_int {
    posted.map_or_else(|why| refused(why, EAGAIN), |()| 0)
}
