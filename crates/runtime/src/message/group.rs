//! Broadcasts to several mailboxes, grouped by the sockets of their owners.

use alloc::vec::Vec;

use antiphon_platform::{Notify, Platform, SocketId};

use super::{Message, NotPosted, Park, Sender};

/// Senders of several mailboxes, by socket.
///
/// A broadcast is one post to each member, socket by socket, so that no member gets the message
/// twice and the sender knows which members did not get it. *Turned down:* a head for each socket
/// that posts to the others there: its action would have to wait, or to lose a message, if one of
/// those is full.
#[derive(Clone, Debug)]
pub struct Group<P: Platform, N: Notify = Park<P>> {
    /// The members by socket; within one, in the order in which they were added.
    members: Vec<(SocketId, Sender<P, N>)>,
}

/// A member to which a message was not posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The index of the member in [`Group::members`].
    pub member: usize,
    /// The reason, and the message.
    pub why: NotPosted,
}

impl<P: Platform, N: Notify> Group<P, N> {
    /// Creates a group without members.
    #[must_use]
    pub const fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Adds a mailbox whose owner is on `socket`, after the others of that socket; the indices of
    /// members with larger socket numbers increase by one.
    pub fn add(&mut self, socket: SocketId, sender: Sender<P, N>) {
        let at = self.members.partition_point(|(other, _)| other.0 <= socket.0);
        self.members.insert(at, (socket, sender));
    }

    /// All members, by socket.
    pub fn members(&self) -> impl Iterator<Item = &Sender<P, N>> {
        self.members.iter().map(|(_, sender)| sender)
    }

    /// Posts a message to each member, once. Does not block.
    ///
    /// # Errors
    ///
    /// The members that did not get the message. All others have it.
    pub fn broadcast(&self, message: Message) -> Result<(), Vec<Missed>> {
        self.post_if(message, |_| true)
    }

    /// Like [`broadcast`](Self::broadcast), to the members on one socket.
    ///
    /// # Errors
    ///
    /// See `broadcast`.
    pub fn multicast(&self, socket: SocketId, message: Message) -> Result<(), Vec<Missed>> {
        self.post_if(message, |of| of == socket)
    }

    fn post_if(
        &self,
        message: Message,
        wanted: impl Fn(SocketId) -> bool,
    ) -> Result<(), Vec<Missed>> {
        let members = self.members.iter().enumerate().filter(|(_, (socket, _))| wanted(*socket));
        let missed: Vec<_> = members
            .filter_map(|(member, (_, sender))| {
                sender.post(message).err().map(|why| Missed { member, why })
            })
            .collect();
        if missed.is_empty() { Ok(()) } else { Err(missed) }
    }
}

impl<P: Platform, N: Notify> Default for Group<P, N> {
    fn default() -> Self {
        Self::new()
    }
}
