//! The nodes of the queue locks.
//!
//! The published queue locks hand a node in at `lock` and again at `unlock`. Here the interface is
//! that of a mutex, so the owner's node has to be found again: its name stands in the lock, beside
//! the tail. `unlock` therefore takes the line of the tail back from the thread that came last,
//! which the published locks need not do.

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
    /// A node of the caller's own, if there is one. Its words are those of an earlier use.
    pub(crate) fn try_take() -> Option<Self> {
        Self::at(arena::<P>().take()?.bits())
    }

    /// Does what [`try_take`](Self::try_take) does; naps until there is one.
    pub(crate) fn take() -> Self {
        loop {
            if let Some(node) = Self::try_take() {
                return node;
            }
            Self::nap();
        }
    }

    /// Does what [`take`](Self::take) does, and tries `take_lock` after each nap; `None` if that
    /// took the lock.
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

    /// Sleeps for a moment, where there is no node.
    pub(crate) fn nap() {
        nap::nap::<P>(200_000);
    }

    /// The node that a word of a lock names; `None` for 0, which names none. An index alone is a
    /// name too, by which a node can be found and not given back.
    pub(crate) fn at(bits: u32) -> Option<Self> {
        let id = WaiterId::from_bits(bits)?;
        // The memory of a node that was handed out stays.
        Some(Self { id, waiter: arena::<P>().resolve_any(id)? })
    }

    /// A node of the caller's own that stands alone in the queue which ends at `tail`; `None` if
    /// another stands there, or there is no node. `begin` makes it ready to be found.
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

    /// The node of the lock's owner, which calls and has left the node's name in `word`.
    pub(crate) fn of_owner(word: &P::U32) -> Self {
        // Relaxed: written by the owner, which is us.
        let Some(me) = Self::at(word.load(Relaxed)) else {
            unreachable!("the owner of the lock has left its name")
        };
        me
    }

    /// The bits of a word that names this node.
    pub(crate) fn bits(&self) -> u32 {
        self.id.bits()
    }

    /// Gives the node back: no other thread will touch it any more.
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

    /// The waiter to wake, if it sleeps. Call it before the waiter is allowed to go on: after that
    /// the node may have another owner.
    pub(crate) fn reference(&self) -> Option<WaiterRef> {
        arena::<P>().reference(self.id.index())
    }
}
