//! The structure that a CST lock has for each socket that uses it: two or three lines, and the list
//! by which they are found.
//!
//! | line | fields of the node | meaning |
//! |---|---|---|
//! | front | `socket` | the socket that it is for |
//! | | `batch` | name of the back line |
//! | | `resume` | the next socket's front line, 0 for the last |
//! | | `called` | name of the readers' line, 0 in a mutex |
//! | back | `wants` | tail of the socket's queue, 0 is empty |
//! | | `called` | name of the node of the queue's first, which has the lock or is to get it |
//! | | `due` | the sleepers, the last to come first |
//! | | `queue` | sleepers that were taken off that list, the first to come first; the owner's |
//! | | `batch` | how often the lock was handed on since the socket had its turn |
//! | | `resume` | the line that the socket's next turn uses: 0 front, 1 back |
//! | both | `next`, `status` | the socket's place in the sockets' queue |
//!
//! The lines are nodes of the arena: a lock must not allocate, a name has 32 bits, and memory that
//! is never freed may be read late. The arena decides where their pages lie; `front` is written
//! only once in two turns, so each socket reads the list from its own cache.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, SocketId, WaiterId};

use super::readers::Readers;
use crate::arena;
use crate::classic::node::Node;

/// A lock's structure for one socket.
pub(super) struct Snode<P: Platform> {
    pub(super) front: Node<P>,
    pub(super) back: Node<P>,
}

impl<P: Platform> Snode<P> {
    /// Returns the structure of this name; `None` for 0, and for structures that a parent process
    /// has left.
    pub(super) fn at(bits: u32) -> Option<Self> {
        let id = WaiterId::from_bits(bits)?;
        let front = Node { id, waiter: arena::<P>().resolve(id)? };
        // Relaxed: published with the name, and not written after that.
        let back = Node::at(front.waiter.batch.load(Relaxed))?;
        Some(Self { front, back })
    }

    /// Takes the nodes of a new structure, if they are free; no other thread knows it yet. With
    /// `READERS` it has a line for readers.
    fn take<const READERS: bool>(socket: SocketId) -> Option<Self> {
        let front = Node::try_take()?;
        let Some(back) = Node::try_take() else {
            front.give();
            return None;
        };
        let snode = Self { front, back };
        snode.front.waiter.called.store(0, Relaxed);
        if READERS {
            let Some(line) = Node::<P>::try_take() else {
                snode.give();
                return None;
            };
            snode.front.waiter.called.store(line.bits(), Relaxed);
            Readers(line).init();
        }
        // Relaxed, all: published with the name.
        snode.front.waiter.socket.store(socket.0 as u16, Relaxed);
        snode.front.waiter.batch.store(snode.back.bits(), Relaxed);
        for word in [snode.tail(), snode.parked(), snode.passes(), &snode.back.waiter.resume] {
            word.store(0, Relaxed);
        }
        snode.first_asleep().store(0, Relaxed);
        Some(snode)
    }

    fn give(self) {
        if let Some(Readers(line)) = self.readers() {
            line.give();
        }
        self.back.give();
        self.front.give();
    }

    /// Returns the socket's readers; `None` in a mutex.
    pub(super) fn readers(&self) -> Option<Readers<P>> {
        Node::at(self.front.waiter.called.load(Relaxed)).map(Readers)
    }

    pub(super) fn tail(&self) -> &'static P::U32 {
        &self.back.waiter.wants
    }

    pub(super) fn parked(&self) -> &'static P::U32 {
        &self.back.waiter.due
    }

    pub(super) fn first_asleep(&self) -> &'static P::U64 {
        &self.back.waiter.queue
    }

    pub(super) fn passes(&self) -> &'static P::U32 {
        &self.back.waiter.batch
    }

    /// Stores the name of the queue's first node.
    pub(super) fn own(&self, me: &Node<P>) {
        // Relaxed, here and below: only the owner uses it, handed on with the lock.
        self.back.waiter.called.store(me.bits(), Relaxed);
    }

    /// Returns the queue's first node, which is the owner's.
    pub(super) fn owner(&self) -> Node<P> {
        Node::of_owner(&self.back.waiter.called)
    }

    /// Returns the line for a turn that begins; called by the head (CST-2).
    pub(super) fn begin_turn(&self) -> &Node<P> {
        let turn = self.back.waiter.resume.load(Relaxed);
        self.back.waiter.resume.store(1 - turn, Relaxed);
        self.passes().store(0, Relaxed);
        self.line(turn)
    }

    /// Returns the line of the present turn; called by the owner.
    pub(super) fn present_line(&self) -> &Node<P> {
        self.line(1 - self.back.waiter.resume.load(Relaxed))
    }

    fn line(&self, turn: u32) -> &Node<P> {
        if turn == 0 { &self.front } else { &self.back }
    }

    fn next(&self) -> u32 {
        self.front.waiter.resume.load(Relaxed)
    }

    fn is_of(&self, socket: SocketId) -> bool {
        self.front.waiter.socket.load(Relaxed) == socket.0 as u16
    }
}

/// The list of a lock's structures.
#[repr(transparent)]
pub(super) struct Snodes<P: Platform> {
    first: P::U32,
}

impl<P: Platform> Snodes<P> {
    pub(super) const NEW: Self = Self { first: P::U32::ZERO };

    /// Returns the structure of `socket`, if there is one.
    pub(super) fn get(&self, socket: SocketId) -> Option<Snode<P>> {
        // Acquire: as in `of`.
        // mutant: the caller adds to a word of the structure, and in a model an addition always
        // follows the store that the structure was made with.
        Self::find(self.first.load(Acquire), 0, socket)
    }

    /// Returns the structure of `socket`, and whether this call has made it. `None` if no nodes are
    /// free for it.
    pub(super) fn of<const READERS: bool>(&self, socket: SocketId) -> Option<(Snode<P>, bool)> {
        // Acquire, here and where the exchange fails: pairs with its release.
        let mut first = self.first.load(Acquire);
        if let Some(found) = Self::find(first, 0, socket) {
            return Some((found, false));
        }
        let new = Snode::<P>::take::<READERS>(socket)?;
        loop {
            // A list that a parent process has left does not count.
            let rest = Snode::<P>::at(first).map_or(0, |snode| snode.front.bits());
            new.front.waiter.resume.store(rest, Relaxed);
            // Release: the structure.
            let added = self.first.compare_exchange(first, new.front.bits(), Release, Acquire);
            let Err(now) = added else { return Some((new, true)) };
            // CST-1: no structure leaves the list, so if it has changed, it has grown.
            if let Some(found) = Self::find(now, first, socket) {
                new.give();
                return Some((found, false));
            }
            first = now;
        }
    }

    /// Searches from the structure named `from` up to, not including, the one named `to`.
    fn find(from: u32, to: u32, socket: SocketId) -> Option<Snode<P>> {
        let mut part = Walk::from(from).take_while(|snode: &Snode<P>| snode.front.bits() != to);
        part.find(|snode| snode.is_of(socket))
    }

    /// Iterates over all structures, the newest first.
    pub(super) fn iter(&self) -> Walk<P> {
        // Acquire: as in `of`.
        Walk::from(self.first.load(Acquire))
    }

    /// Discards the list that a parent process has left.
    pub(super) fn forget(&self) {
        // Relaxed: there is nothing to publish.
        self.first.store(0, Relaxed);
    }

    /// Gives all structures back; no other thread may use the lock.
    pub(super) fn give(&mut self) {
        for snode in self.iter() {
            snode.give();
        }
        self.forget();
    }
}

/// Iterator over the list of structures.
pub(super) struct Walk<P: Platform>(u32, PhantomData<P>);

impl<P: Platform> Walk<P> {
    fn from(first: u32) -> Self {
        Self(first, PhantomData)
    }
}

impl<P: Platform> Iterator for Walk<P> {
    type Item = Snode<P>;

    fn next(&mut self) -> Option<Snode<P>> {
        let snode = Snode::at(self.0)?;
        self.0 = snode.next();
        Some(snode)
    }
}
