//! Active messages: a thread has others run something, with a few words, without a lock between
//! them.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use antiphon::message::{Actions, Mailbox, Message};
//!
//! let actions = Actions::new(16);
//! let sum = Arc::new(AtomicU64::new(0));
//! let counted = sum.clone();
//! let add = actions.register(move |[a, b, _]| {
//!     counted.fetch_add(a + b, Relaxed);
//! })?;
//!
//! let mut mailbox = Mailbox::new(&actions, 64);
//! let sender = mailbox.sender();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || {
//!         for number in 0..100 {
//!             // Waits while the mailbox is full; `post` would hand the message back.
//!             let message = Message { action: add, payload: [number, 1, 0] };
//!             sender.post_wait(message, None).expect("the mailbox is open");
//!         }
//!     });
//!     let mut messages = 0;
//!     while messages < 100 {
//!         // Spins, and then sleeps. `poll` delivers what is there, and never waits.
//!         messages += mailbox.wait(None).messages;
//!     }
//! });
//! assert_eq!(sum.load(Relaxed), 5050);
//! actions.unregister(add)?;
//! assert!(mailbox.close().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`generic`](crate::generic) has the same for other machines, and [`MailboxWith`] for owners that
//! sleep in other ways: beside files, in an event loop, with an [`EventFd`].

use antiphon_linux::Linux;
use antiphon_runtime::message;

pub use antiphon_linux::notify::{EventFd, Signal, UserInterrupts};
pub use antiphon_platform::{Clock, CpuId, Deadline, Notify, SocketId};
pub use antiphon_runtime::message::{
    ActionId, BATCH, Delivered, Message, Missed, NotPosted, NotSignalled, Payload, Refused,
    SIGNALS, SignalId, TableFull,
};

pub use crate::raw::deadline_after;

/// A table of actions; see [`message::Actions`].
pub type Actions = message::Actions<Linux>;
/// How owners of mailboxes sleep, if nothing else is said: on a futex, or as a fiber.
pub type Park = message::Park<Linux>;
/// How an owner waits that keeps its CPU.
pub type Spin = message::Spin<Linux>;
/// A mailbox: its owner runs what others post; see [`message::Mailbox`].
pub type Mailbox = message::Mailbox<Linux, Park>;
/// What posts to a [`Mailbox`]; see [`message::Sender`].
pub type Sender = message::Sender<Linux, Park>;
/// Several mailboxes, by socket; see [`message::Group`].
pub type Group = message::Group<Linux, Park>;
/// A mailbox whose owner sleeps in its own way.
pub type MailboxWith<N> = message::Mailbox<Linux, N>;
/// What posts to a [`MailboxWith`].
pub type SenderWith<N> = message::Sender<Linux, N>;
