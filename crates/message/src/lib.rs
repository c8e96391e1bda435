//! Active messages: a thread has another thread run an action with a few words as arguments,
//! without a lock between them.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use antiphon_message::{Actions, Mailbox, Message};
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
//! # Where the owner checks for messages
//!
//! In the example above, a thread only waits for messages, by [`Mailbox::wait`]. A worker checks
//! for messages between two pieces of work, by [`Mailbox::poll`]:
//!
//! ```
//! # use std::sync::Arc;
//! # use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
//! # use antiphon_message::{Actions, Mailbox};
//! let actions = Actions::new(16);
//! let cancelled = Arc::new(AtomicBool::new(false));
//! let told = cancelled.clone();
//! let cancel = actions.register_signal(move || told.store(true, Relaxed))?;
//!
//! let mut mailbox = Mailbox::new(&actions, 64);
//! let sender = mailbox.sender();
//! let worker = std::thread::spawn(move || {
//!     let mut pieces = 0_u64;
//!     while !cancelled.load(Relaxed) {
//!         pieces += 1;
//!         let _ = mailbox.poll();
//!     }
//!     pieces
//! });
//! sender.signal(cancel)?;
//! assert_ne!(worker.join().unwrap(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An event loop sleeps beside its files, with a [`MailboxWith`] that notifies by an [`EventFd`]:
//!
//! ```
//! # use std::os::fd::{AsFd, AsRawFd};
//! # use antiphon_message::{Actions, EventFd, MailboxWith, Message};
//! # let actions = Actions::new(16);
//! # let action = actions.register(|_| {})?;
//! let mut mailbox = MailboxWith::with_notify(&actions, 64, EventFd::new()?);
//! let sender = mailbox.sender();
//! std::thread::spawn(move || sender.post(Message { action, payload: [0; 3] }));
//! let mut messages = 0;
//! while messages == 0 {
//!     // Unless something is there: then it does not sleep.
//!     if let Some(doze) = mailbox.doze() {
//!         let fd = doze.notifier().as_fd().as_raw_fd();
//!         let mut files = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
//!         // SAFETY: `files.len()` files.
//!         unsafe { libc::poll(files.as_mut_ptr(), files.len() as _, -1) };
//!     }
//!     messages += mailbox.poll().messages;
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Posting to many mailboxes, and to a full one
//!
//! A [`Group`] knows on which socket (NUMA node) each of its mailboxes is read:
//!
//! ```
//! # use std::time::Duration;
//! # use antiphon_message::{Actions, Group, Mailbox, Message, Missed, NotPosted, SocketId};
//! # use antiphon_message::deadline_after;
//! # let actions = Actions::new(16);
//! # let action = actions.register(|_| {})?;
//! let mut mailboxes = [Mailbox::new(&actions, 1), Mailbox::new(&actions, 1)];
//! let mut group = Group::new();
//! group.add(SocketId(0), mailboxes[0].sender());
//! group.add(SocketId(1), mailboxes[1].sender());
//!
//! let message = Message { action, payload: [0; 3] };
//! assert_eq!(group.multicast(SocketId(1), message), Ok(()));
//! // A mailbox that is not full has it; one that is full is named.
//! let why = NotPosted::Full(message);
//! assert_eq!(group.broadcast(message), Err(vec![Missed { member: 1, why }]));
//! // Or the sender waits for room, for this long.
//! let soon = deadline_after(Duration::from_millis(1));
//! assert_eq!(mailboxes[1].sender().post_wait(message, Some(soon)), Err(why));
//! assert!(mailboxes.iter_mut().all(|mailbox| mailbox.poll().messages == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::Duration;

use antiphon_linux::Linux;
use antiphon_runtime::message;

pub use antiphon_linux::notify::{EventFd, Signal};
pub use antiphon_platform::{Clock, CpuId, Deadline, Notify, SocketId};
pub use antiphon_runtime::message::{
    ActionId, BATCH, Delivered, Message, Missed, NotPosted, NotSignalled, Payload, Refused,
    SIGNALS, SignalId, TableFull,
};

/// A table of actions; see [`message::Actions`].
pub type Actions = message::Actions<Linux>;
/// The default way in which owners of mailboxes sleep: on a futex, or as a fiber.
pub type Park = message::Park<Linux>;
/// The way in which owners wait that keep their CPU: by spinning.
pub type Spin = message::Spin<Linux>;
/// A mailbox: its owner runs what others post; see [`message::Mailbox`].
pub type Mailbox = message::Mailbox<Linux, Park>;
/// The posting end of a [`Mailbox`]; see [`message::Sender`].
pub type Sender = message::Sender<Linux, Park>;
/// Several mailboxes, by socket; see [`message::Group`].
pub type Group = message::Group<Linux, Park>;
/// A mailbox whose owner sleeps in its own way.
pub type MailboxWith<N> = message::Mailbox<Linux, N>;
/// The posting end of a [`MailboxWith`].
pub type SenderWith<N> = message::Sender<Linux, N>;

/// The time `timeout` from now, for the calls that wait. A time that is too far to be represented
/// never comes.
#[must_use]
pub fn deadline_after(timeout: Duration) -> Deadline {
    Deadline::after::<Linux>(timeout)
}
