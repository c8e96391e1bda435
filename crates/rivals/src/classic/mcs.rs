//! The MCS lock: a queue of nodes, in which each waiter spins on its own node.
//!
//! Source: J. Mellor-Crummey, M. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.4.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the queue; 0 is free |
//! | 4–7 | `owner` | name of the owner's node; means nothing while the lock is free |
//!
//! ```text
//!   lock.owner                   lock.tail
//!       ▼                            ▼
//!     owner ──next──► waiter ──► waiter
//! ```
//!
//! The owner stays at the head of the queue and grants the lock to the waiter behind it: a hand-off
//! touches two nodes, whatever the number of waiters. But the lock goes to that waiter even if it
//! is not running.
//!
//! - MCS-1: a node is linked behind the one that was the tail before it, by its own waiter, once.
//! - MCS-2: an owner that unlocks leaves an empty queue, or grants the lock to the waiter behind
//!   it; if that waiter has joined and not linked itself yet, the owner waits for the link.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::node::Node;

/// The status of the thread that has the lock.
pub(super) const GRANTED: u32 = 0;
/// The status of a waiter.
pub(super) const WAITING: u32 = 1;

/// An MCS lock of 8 bytes, and a node of 64 bytes for the owner and for each waiter.
#[repr(C)]
pub struct Mcs<P: Platform> {
    tail: P::U32,
    owner: P::U32,
}

impl<P: Platform> Mcs<P> {
    /// A free lock.
    pub const NEW: Self = Self { tail: P::U32::ZERO, owner: P::U32::ZERO };

    /// Joins the queue and spins until the lock is granted. Naps first if there is no node for the
    /// caller.
    pub fn lock(&self) {
        self.lock_by(|me| {
            // Acquire: pairs with the release in `unlock`.
            me.waiter.status.wait_while(Acquire, |status| status == WAITING);
        });
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks.
    pub fn try_lock(&self) -> bool {
        let me = Node::alone_in(&self.tail, Self::begin);
        me.inspect(|me| self.own(me)).is_some()
    }

    /// Releases the lock, to the next waiter of the queue if there is one; spins for a moment if
    /// that waiter is just joining.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        self.unlock_by(|next| {
            // Release: pairs with the acquire in `lock`.
            next.waiter.status.store(GRANTED, Release);
        });
    }

    /// Does what [`lock`](Self::lock) does; a caller that must wait calls `wait`, which returns
    /// when its status is [`GRANTED`], loaded with acquire.
    pub(super) fn lock_by(&self, wait: impl FnOnce(&Node<P>)) {
        let me = Node::take();
        Self::begin(&me);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that, because we write to the node that we find; if there is none, with the release in
        // `unlock_by`.
        if let Some(previous) = Node::<P>::at(self.tail.swap(me.bits(), AcqRel)) {
            // Release: our node, to the owner that grants us the lock; pairs with the acquire in
            // `unlock_by`.
            previous.waiter.next.store(me.bits(), Release);
            wait(&me);
        }
        self.own(&me);
    }

    /// Does what [`unlock`](Self::unlock) does; `grant` releases the status of the next owner.
    pub(super) fn unlock_by(&self, grant: impl FnOnce(&Node<P>)) {
        let me = Node::<P>::of_owner(&self.owner);
        let next = &me.waiter.next;
        // Relaxed: only whether it is zero matters here. Release: what we have done, to the
        // arriving waiter that finds the queue empty; pairs with the acquire in `lock_by`.
        let alone = next.load(Relaxed) == 0
            && self.tail.compare_exchange(me.bits(), 0, Release, Relaxed).is_ok();
        if !alone {
            // Acquire: pairs with the release of the link.
            let next = next.wait_while(Acquire, |next| next == 0);
            if let Some(next) = Node::at(next) {
                grant(&next);
            }
        }
        me.give();
    }

    fn begin(me: &Node<P>) {
        // Relaxed: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(WAITING, Relaxed);
    }

    fn own(&self, me: &Node<P>) {
        // Relaxed: only the owner uses it; the next owner writes it after us.
        self.owner.store(me.bits(), Relaxed);
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform] Mcs<P>);
