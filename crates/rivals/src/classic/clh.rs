//! The CLH lock: a queue in which each waiter looks at the node before its own.
//!
//! Source: T. Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap", University
//! of Washington TR 93-02-02, 1993; P. Magnusson, A. Landin, E. Hagersten, "Queue Locks on Cache
//! Coherent Multiprocessors", IPPS 1994.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the queue; 0 is free |
//! | 4–7 | `owner` | name of the owner's node; means nothing while the lock is free |
//!
//! ```text
//!   lock.owner                       lock.tail
//!       ▼                                ▼
//!     owner ◄──looks at── waiter ◄── waiter
//! ```
//!
//! There are no links: a waiter learns which node is before it as it joins, and need not know the
//! node behind it. The node of an owner that has unlocked belongs to the waiter behind it.
//!
//! One departure from the source: in the published lock the last owner's node stays at the tail, so
//! that a lock which was ever held owns a node for good. Here the last owner takes it out of the
//! empty queue, by one more exchange where no thread waits, and a free lock owns nothing.
//!
//! - CLH-1: a node is given back by the waiter behind it, once that waiter has seen it released; or
//!   by its own owner, if the owner has taken it out of the tail.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::node::Node;

/// The status of the nodes of the owner and of the waiters.
const HELD: u32 = 1;
/// The status of the node of an owner that has unlocked.
const RELEASED: u32 = 0;

/// A CLH lock of 8 bytes, and a node of 64 bytes for the owner and for each waiter.
#[repr(C)]
pub struct Clh<P: Platform> {
    tail: P::U32,
    owner: P::U32,
}

impl<P: Platform> Clh<P> {
    /// A free lock.
    pub const NEW: Self = Self { tail: P::U32::ZERO, owner: P::U32::ZERO };

    /// Joins the queue and spins until the owner before it has unlocked. Naps first while no node
    /// is free for the caller.
    pub fn lock(&self) {
        let me = Node::take();
        Self::begin(&me);
        // Release: our status, to the waiter behind us. Acquire: pairs with that; and if the queue
        // was empty, with the release of the tail in `unlock`.
        if let Some(previous) = Node::<P>::at(self.tail.swap(me.bits(), AcqRel)) {
            // Acquire: pairs with the release of the status in `unlock`.
            previous.waiter.status.wait_while(Acquire, |status| status == HELD);
            previous.give();
        }
        self.own(&me);
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks.
    pub fn try_lock(&self) -> bool {
        let me = Node::alone_in(&self.tail, Self::begin);
        me.inspect(|me| self.own(me)).is_some()
    }

    /// Releases the lock; never waits.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        let me = Node::<P>::of_owner(&self.owner);
        // Relaxed: a look, so that the exchange seldom fails. Release: what we have done, to the
        // arriving waiter that finds the queue empty; pairs with the acquire in `lock`.
        let alone = self.tail.load(Relaxed) == me.bits()
            && self.tail.compare_exchange(me.bits(), 0, Release, Relaxed).is_ok();
        if alone {
            me.give();
        } else {
            // Release: what we have done, to the waiter behind us, which has the node from now on.
            me.waiter.status.store(RELEASED, Release);
        }
    }

    fn begin(me: &Node<P>) {
        // Relaxed: published with the node's name.
        me.waiter.status.store(HELD, Relaxed);
    }

    fn own(&self, me: &Node<P>) {
        // Relaxed: only the owner uses it; the next owner writes it after us.
        self.owner.store(me.bits(), Relaxed);
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform] Clh<P>);
