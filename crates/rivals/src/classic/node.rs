//! Queue nodes of the published queue locks, and the calls that take, find and give them back.
//!
//! Callers of the published queue locks pass a node to `lock` and again to `unlock`. Here the
//! interface is that of a mutex, so `unlock` must find the owner's node: its name is stored in the
//! lock, beside the tail. `unlock` therefore fetches the cache line of the tail from the thread
//! that came last, which the published locks need not do.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, Waiter, WaiterId, WaiterRef};

use crate::arena;
use antiphon_sync::nap;

/// A node and its name.
pub(crate) struct Node<P: Platform> {
    pub(crate) id: WaiterId,
    pub(crate) waiter: &'static Waiter<P>,
}

impl<P: Platform> Node<P> {
    /// Takes a node for the caller, if one is free. Its words are those of an earlier use.
    pub(crate) fn try_take() -> Option<Self> {
        Self::at(arena::<P>().take()?.bits())
    }

    /// Does what [`try_take`](Self::try_take) does; naps until a node is free.
    pub(crate) fn take() -> Self {
        loop {
            if let Some(node) = Self::try_take() {
                return node;
            }
            Self::nap();
        }
    }

    /// Does what [`take`](Self::take) does, and tries `take_lock` after each nap; returns `None` if
    /// `take_lock` took the lock.
    pub(crate) fn take_or(take_lock: impl Fn() -> bool) -> Option<Self> {
        loop {
            if let Some(node) = Self::try_take() {
                return Some(node);
            }
            Self::nap();
            if take_lock() {
                return None;
            }
        }
    }

    /// Sleeps for a moment, because no node is free.
    pub(crate) fn nap() {
        nap::nap::<P>(200_000);
    }

    /// Returns the node that a word of a lock names; `None` for 0, which names none. An index alone
    /// is also a name: it finds the node, but cannot give it back.
    pub(crate) fn at(bits: u32) -> Option<Self> {
        let id = WaiterId::from_bits(bits)?;
        // The memory of a node that was handed out is never freed.
        Some(Self { id, waiter: arena::<P>().resolve_any(id)? })
    }

    /// Takes a node for the caller and makes it the only one in the queue that ends at `tail`;
    /// returns `None` if the queue is not empty, or no node is free. `begin` prepares the node
    /// before others can find it.
    ///
    /// This is the `try_lock` of a queue lock: a thread that is alone in the queue owns the lock.
    pub(crate) fn alone_in(tail: &P::U32, begin: impl FnOnce(&Self)) -> Option<Self> {
        // Relaxed: the exchange below orders. A caller that finds the lock held needs no node.
        if tail.load(Relaxed) != 0 {
            return None;
        }
        let me = Self::try_take()?;
        begin(&me);
        // Release: our node, to the arriving waiter that finds its name there. Acquire: pairs with
        // the release by which the last owner has left the queue.
        if tail.compare_exchange(0, me.bits(), AcqRel, Relaxed).is_err() {
            me.give();
            return None;
        }
        Some(me)
    }

    /// Returns the node of the lock's owner, which is the caller and has left the node's name in
    /// `word`.
    pub(crate) fn of_owner(word: &P::U32) -> Self {
        // Relaxed: written by the owner, which is us.
        let Some(me) = Self::at(word.load(Relaxed)) else {
            unreachable!("the owner of the lock has left its name")
        };
        me
    }

    /// Returns the bits of a word that names this node.
    pub(crate) fn bits(&self) -> u32 {
        self.id.bits()
    }

    /// Gives the node back: no other thread may touch it any more.
    pub(crate) fn give(self) {
        arena::<P>().give(self.id);
    }

    /// Sleeps while the status of the caller's own node is `asleep`.
    pub(crate) fn sleep_while(&self, asleep: u32) {
        // Acquire: pairs with the release of the thread that ends the sleep.
        while self.waiter.status.load(Acquire) == asleep {
            // The reason for its return does not matter: the loop checks the status.
            let _ = P::park(self.waiter, None);
        }
    }

    /// Returns the waiter to wake, if it sleeps. Call this before the waiter is allowed to go on:
    /// after that the node may have another owner.
    pub(crate) fn reference(&self) -> Option<WaiterRef> {
        arena::<P>().reference(self.id.index())
    }
}
