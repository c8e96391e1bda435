//! Active messages: a sender names an action and gives it a few words, and the owner of the mailbox
//! runs the action at its next poll.
//!
//! After von Eicken, Culler, Goldstein and Schauser, "Active Messages", ISCA 1992; and Hale and
//! Dinda, "An Evaluation of Asynchronous Software Events on Modern Hardware", MASCOTS 2018, whose
//! Nemo has the table of actions, and one slot per core that a second sender overwrites.
//!
//! | | [message](Sender::post) | [signal](Sender::signal) |
//! |---|---|---|
//! | carries | an action and three words | an action |
//! | runs it | once for each message | once or more after the last signal: signals coalesce |
//! | when the mailbox is full | is handed back, or [waits](Sender::post_wait) | is never refused |
//! | order | as they were posted, a sender's own | none |
//!
//! | file | contents |
//! |---|---|
//! | `actions`, `id` | the table of actions; withdrawing an action that messages still name |
//! | `pulse` | whether an owner is running actions now |
//! | `ring` | the messages of a mailbox |
//! | `mailbox`, `sender` | the two ends of a mailbox |
//! | `idle` | the wait of an owner that has nothing to run |
//! | `group` | several mailboxes, by socket |
//!
//! Actions run only at the owner's safe points: in calls of [`Mailbox::poll`], in its event loop or
//! between two tasks, or of [`Mailbox::wait`], for a thread that has nothing else to do. Nothing is
//! interrupted.
//!
//! # What to know
//!
//! - **An action should be short** and must not wait for messages of its own mailbox, which no
//!   thread delivers meanwhile: it posts by [`Sender::post`], and keeps refused messages for later.
//! - **An action that panics** unwinds through the owner's `poll`. Its message was delivered; the
//!   messages behind it are left for the next poll. The same holds for signals.
//! - **An action that keeps a sender** keeps the mailbox, whose table keeps the action: it is freed
//!   when it is unregistered, and not with the last mailbox. A [`SignalId`] or [`ActionId`] is
//!   valid for its own table only; elsewhere it runs another action, or none.
//! - **A poster that is stopped** in the middle of a post delays the messages that were posted
//!   after it. It has claimed a slot of the ring, not a lock.
//! - **A mailbox belongs to its process**: the copy that a `fork` makes in the child can't be used.

mod actions;
mod group;
mod id;
mod idle;
mod mailbox;
mod pulse;
mod ring;
mod sender;

pub use crate::sleep::{Park, Spin};
pub use actions::{Actions, Refused, SIGNALS, TableFull};
pub use group::{Group, Missed};
pub use id::{ActionId, SignalId};
pub use idle::Doze;
pub use mailbox::{BATCH, Delivered, Mailbox};
pub use sender::{NotPosted, NotSignalled, Sender};

/// The words that a message carries to its action.
pub type Payload = [u64; 3];

/// A request to run an action, with the words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The action to run.
    pub action: ActionId,
    /// The words that the action is given.
    pub payload: Payload,
}
