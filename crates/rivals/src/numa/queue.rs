//! The queue of one socket, for locks that have a queue per socket: an MCS queue whose first waiter
//! may also have to acquire another lock.
//!
//! ```text
//!                     the one before it hands both locks on
//!   WAITING ─────────────────────────────────────────────────► anything else
//!      │
//!      └──────────────────────────────────────────────────────► LEADS
//!                     the one before it has released the other lock
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, SocketId};

use crate::classic::node::Node;

/// The status of a waiter that waits in its socket's queue.
pub(super) const WAITING: u32 = 0;
/// The status of a waiter that has become the first, and must acquire the other lock.
pub(super) const LEADS: u32 = u32::MAX;

/// Returns the index of the caller's queue, of `sockets` queues.
pub(super) fn number<P: Platform>(sockets: usize) -> usize {
    let SocketId(socket) = P::socket();
    socket as usize % sockets
}

/// Tail word of the queue; the lock knows the first node.
#[repr(transparent)]
pub(super) struct Queue<P: Platform> {
    tail: P::U32,
}

impl<P: Platform> Queue<P> {
    /// An empty queue.
    pub(super) const NEW: Self = Self { tail: P::U32::ZERO };

    /// Joins the queue and waits until the caller is the first; returns the status that the owner
    /// has given it, or [`LEADS`] if the queue was empty.
    pub(super) fn join(&self, me: &Node<P>) -> u32 {
        // Relaxed: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(WAITING, Relaxed);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that, because we write to the node that we find.
        let Some(previous) = Node::<P>::at(self.tail.swap(me.bits(), AcqRel)) else { return LEADS };
        // Release: our node, to the owner that calls us; pairs with the acquires in `call` and
        // `leave`.
        previous.waiter.next.store(me.bits(), Release);
        // Acquire: pairs with the release in `call`.
        me.waiter.status.wait_while(Acquire, |status| status == WAITING)
    }

    /// Hands everything that the caller holds to the waiter behind it, by this status; returns
    /// `false` if no waiter is known to be there.
    pub(super) fn call(me: &Node<P>, status: u32) -> bool {
        // Acquire: pairs with the release of the link.
        let next = Node::<P>::at(me.waiter.next.load(Acquire));
        if let Some(next) = &next {
            // Release: what we have done; pairs with the acquire in `join`.
            next.waiter.status.store(status, Release);
        }
        next.is_some()
    }

    /// Removes the first node, whose thread still has the other lock, from the queue; a waiter
    /// behind it then leads. Spins for a moment if that waiter is just joining.
    pub(super) fn leave(&self, me: &Node<P>) {
        let next = &me.waiter.next;
        // Relaxed: a waiter that finds the queue empty is ordered after us by the other lock.
        let alone = next.load(Relaxed) == 0
            && self.tail.compare_exchange(me.bits(), 0, Relaxed, Relaxed).is_ok();
        if !alone {
            // Acquire: pairs with the release of the link.
            let next = next.wait_while(Acquire, |next| next == 0);
            if let Some(next) = Node::<P>::at(next) {
                // Relaxed: the waiter is ordered after us by the other lock.
                next.waiter.status.store(LEADS, Relaxed);
            }
        }
    }
}
