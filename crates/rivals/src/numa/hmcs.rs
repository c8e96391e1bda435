//! The hierarchical MCS lock (HMCS): an MCS queue of sockets, whose places are handed on inside
//! each socket.
//!
//! Source: M. Chabbi, M. Fagan, J. Mellor-Crummey, "High Performance Locks for Multi-level NUMA
//! Systems", PPoPP 2015, with two levels: sockets, and the machine.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the queue of sockets; 0 is free |
//! | 4–7 | `place` | name of the node that is the first in it |
//! | 8–9 | `holder` | the socket of that place; `NO_SOCKET` for none |
//! | 64– | `sockets` | for each socket, 64 bytes apart: |
//! | +0 | `queue` | name of the last in the socket's queue; 0 is none |
//! | +4 | `owner` | name of the owner's node, if the lock is held for this socket |
//!
//! | in a node | meaning |
//! |---|---|
//! | `next`, `status` | its place in the socket's queue; `status` counts the hand-overs |
//! | `resume` | its place in the queue of sockets: the node behind it |
//! | `wants`, `socket` | whether that place is the first; the socket that it was taken for |
//!
//! ```text
//!   tail ──────────────────────────────┐
//!   place ─► leader ──resume──► leader ◄         queue of sockets
//!              · handed on        │next
//!              ▼                  ▼
//!   owner ──next──► waiter …    waiter …         queues of one socket each
//! ```
//!
//! The first of a socket's queue takes a place in the queue of sockets; with the lock it hands that
//! place to a waiter of its socket, up to `BUDGET` times in a row.
//!
//! - HMCS-1: the owner of the lock has the first place in the queue of sockets, and is the first of
//!   its socket's queue.
//! - HMCS-2: after `BUDGET` hand-overs in a row the place is given up, even if waiters of the
//!   socket remain.
//! - HMCS-3: the place is a part of the node of the waiter that took it. That node is given back
//!   with the place, by the owner that gives it up, and not before.
//! - HMCS-4: the place is given up last: after that the lock may be freed.
//!
//! The published lock has a node for each socket in its own memory, which the next leader can reuse
//! only after the place was given up; so it leaves the socket's queue last, when the next owner may
//! already have freed the lock.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::queue::{self, LEADS, Queue};
use crate::classic::node::Node;

/// `wants` of a waiter that does not have the first place.
const WAITING: u32 = 1;
/// `wants` of the waiter that has the first place.
const FIRST: u32 = 0;

/// `holder` of a lock that was acquired outside the sockets' queues.
pub(super) const NO_SOCKET: u16 = u16::MAX;

/// An HMCS lock of `SOCKETS` queues under one; on a machine with more sockets, some share a queue.
/// 64 bytes, 64 bytes for each queue, and a node of 64 bytes for the owner, for each waiter and for
/// the place of the owner's socket.
#[repr(C, align(64))]
pub struct Hmcs<P: Platform, const SOCKETS: usize = 8, const BUDGET: u32 = 64> {
    root: Root<P>,
    sockets: [Socket<P>; SOCKETS],
}

/// The queue of sockets.
#[repr(C)]
pub(super) struct Root<P: Platform> {
    tail: P::U32,
    place: P::U32,
    holder: P::U16,
}

/// The queue of one socket.
#[repr(C, align(64))]
pub(super) struct Socket<P: Platform> {
    queue: Queue<P>,
    owner: P::U32,
}

impl<P: Platform, const SOCKETS: usize, const BUDGET: u32> Hmcs<P, SOCKETS, BUDGET> {
    /// A free lock.
    pub const NEW: Self = {
        assert!(0 < SOCKETS && SOCKETS < NO_SOCKET as usize, "a machine has a socket");
        Self { root: Root::NEW, sockets: [const { Socket::NEW }; SOCKETS] }
    };

    /// Joins the queue of the caller's socket and spins until the caller has the lock. Naps first
    /// while no node is free for the caller.
    pub fn lock(&self) {
        let number = queue::number::<P>(SOCKETS);
        self.sockets[number].lock(Node::take(), &self.root, number as u16);
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks, and joins
    /// no socket's queue.
    pub fn try_lock(&self) -> bool {
        self.root.try_lock()
    }

    /// Releases the lock: to the next waiter of the owner's socket, or to another socket. Spins for
    /// a moment if a waiter is just joining.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        let (place, holder) = self.root.held();
        let socket = self.sockets.get(usize::from(holder));
        if !socket.is_some_and(|socket| socket.hands_over(BUDGET, &place) == Over::ToNext) {
            self.root.leave(place);
        }
    }
}

/// The result of an attempt to hand the lock on in its socket.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Over {
    /// The next waiter has the lock.
    ToNext,
    /// No waiter has the lock; the place must be given up. The value counts the threads that have
    /// had the lock in a row.
    After(u32),
}

impl<P: Platform> Socket<P> {
    pub(super) const NEW: Self = Self { queue: Queue::NEW, owner: P::U32::ZERO };

    /// Acquires the lock by this socket's queue; `number` is the socket's index.
    pub(super) fn lock(&self, me: Node<P>, root: &Root<P>, number: u16) {
        if self.queue.join(&me) == LEADS {
            // Relaxed: the caller's own word. The caller is the first of its socket to have the
            // lock.
            me.waiter.status.store(1, Relaxed);
            let _ = root.enter(&me, number);
            root.hold(&me, number);
        }
        // Relaxed: only the owner accesses it, and it is handed on with the lock.
        self.owner.store(me.bits(), Relaxed);
    }

    /// Hands the lock to the next waiter of the queue, if there is one and the budget is not spent.
    pub(super) fn hands_over(&self, budget: u32, place: &Node<P>) -> Over {
        let me = Node::<P>::of_owner(&self.owner);
        // Relaxed: only the owner accesses it.
        let count = me.waiter.status.load(Relaxed);
        // HMCS-2.
        let called = count <= budget && Queue::call(&me, count + 1);
        if !called {
            self.queue.leave(&me);
        }
        // HMCS-3.
        if me.bits() != place.bits() {
            me.give();
        }
        if called { Over::ToNext } else { Over::After(count) }
    }
}

impl<P: Platform> Root<P> {
    pub(super) const NEW: Self =
        Self { tail: P::U32::ZERO, place: P::U32::ZERO, holder: P::U16::ZERO };

    /// Returns whether no thread has the lock or waits for it on behalf of a socket. The result is
    /// a guess.
    pub(super) fn is_free(&self) -> bool {
        // Relaxed: it orders nothing.
        self.tail.load(Relaxed) == 0
    }

    /// Takes a place for a thread of `socket` and waits until it is the first place; returns the
    /// socket that the place before it was taken for.
    pub(super) fn enter(&self, me: &Node<P>, socket: u16) -> Option<u16> {
        Self::begin(me, socket);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that, because we write to the node that we find; if there is none, with the release in
        // `leave`.
        let previous = Node::<P>::at(self.tail.swap(me.bits(), AcqRel))?;
        // Relaxed: published with the node's name. The node is not given back before we have linked
        // ours to it.
        let before = previous.waiter.socket.load(Relaxed);
        // Release: our node, to the owner that gives us the first place; pairs with the acquire in
        // `leave`.
        previous.waiter.resume.store(me.bits(), Release);
        // Acquire: pairs with the release in `leave`.
        me.waiter.wants.wait_while(Acquire, |wants| wants == WAITING);
        Some(before)
    }

    /// Takes the first place for the caller alone, which is on `socket`, if no place is taken;
    /// returns whether the caller has it.
    pub(super) fn try_enter(&self, me: &Node<P>, socket: u16) -> bool {
        Self::begin(me, socket);
        // Orderings as in `enter`.
        let free = self.tail.compare_exchange(0, me.bits(), AcqRel, Relaxed).is_ok();
        if free {
            self.hold(me, NO_SOCKET);
        }
        free
    }

    /// Implements `try_lock` of the locks that have such a queue.
    pub(super) fn try_lock(&self) -> bool {
        // A caller that finds the lock held needs no node.
        let Some(me) = self.is_free().then(Node::try_take).flatten() else { return false };
        let had = self.try_enter(&me, NO_SOCKET);
        if !had {
            me.give();
        }
        had
    }

    /// Stores the node that has the first place, and the socket that it is for.
    pub(super) fn hold(&self, me: &Node<P>, socket: u16) {
        // Relaxed, both: only the owner accesses them, and they are handed on with the lock.
        self.place.store(me.bits(), Relaxed);
        self.holder.store(socket, Relaxed);
    }

    /// Returns the node and the socket that [`hold`](Self::hold) has stored.
    pub(super) fn held(&self) -> (Node<P>, u16) {
        let place = Node::<P>::of_owner(&self.place);
        // Relaxed: only the owner accesses it.
        (place, self.holder.load(Relaxed))
    }

    /// Gives up the first place, and gives its node back (HMCS-4).
    pub(super) fn leave(&self, place: Node<P>) {
        let behind = &place.waiter.resume;
        // Relaxed: only whether it is zero matters here. Release: what we have done, to the
        // arriving waiter that finds the queue empty; pairs with the acquire in `enter`.
        let alone = behind.load(Relaxed) == 0
            && self.tail.compare_exchange(place.bits(), 0, Release, Relaxed).is_ok();
        if !alone {
            // Acquire: pairs with the release of the link.
            let behind = behind.wait_while(Acquire, |behind| behind == 0);
            if let Some(behind) = Node::<P>::at(behind) {
                // Release: what we have done; pairs with the acquire in `enter`.
                behind.waiter.wants.store(FIRST, Release);
            }
        }
        place.give();
    }

    fn begin(me: &Node<P>, socket: u16) {
        // Relaxed: published with the node's name.
        me.waiter.resume.store(0, Relaxed);
        me.waiter.wants.store(WAITING, Relaxed);
        me.waiter.socket.store(socket, Relaxed);
    }
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, const SOCKETS: usize, const BUDGET: u32] Hmcs<P, SOCKETS, BUDGET>
);
