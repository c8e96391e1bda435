//! The readers of one socket, counted in a word on a cache line of their own.
//!
//! ```text
//!   63           32 31          2    1       0
//!  │ sleepers      │ readers    │ WAKE │ CLOSED │
//! ```
//!
//! | field of the node | meaning |
//! |---|---|
//! | `queue` | the word |
//! | `due` | name of the writer's node that `WAKE` is for |
//!
//! The sleepers are a list of readers of this socket, the last to come first. One exchange opens
//! the word and takes the list. The writer wakes the first, which wakes the others itself: a writer
//! wakes one reader per socket.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform, WaiterId};

use super::CstForm;
use super::parking::{PW, Sleepers, sleep, spin};
use crate::arena;
use crate::classic::node::Node;

const CLOSED: u64 = 1;
const WAKE: u64 = 2;
const READER: u64 = 4;
/// The readers' count in the word.
const COUNT: u64 = 0xFFFF_FFFC;
const LIST_SHIFT: u32 = 32;

/// The status of a reader that was woken, and must wake those behind it on the list.
const LEADER: u32 = 32;

/// The readers of one socket.
pub(super) struct Readers<P: Platform>(pub(super) Node<P>);

impl<P: Platform> Readers<P> {
    /// Resets the word: closed, and no reader is in (CST-RW-2).
    pub(super) fn init(&self) {
        // Relaxed: published with the line's name.
        self.word().store(CLOSED, Relaxed);
    }

    fn word(&self) -> &'static P::U64 {
        &self.0.waiter.queue
    }

    /// CST-RW-1: counts the caller in if no writer is in; returns whether the caller is in.
    pub(super) fn enter(&self) -> bool {
        // Relaxed: the addition below checks again; a reader that finds the word closed here does
        // not write to it.
        if self.word().load(Relaxed) & CLOSED != 0 {
            return false;
        }
        // Acquire: what the writers have done; pairs with the release in `open`.
        let entered = self.word().fetch_add(READER, Acquire) & CLOSED == 0;
        if !entered {
            // A writer may have counted us, and then waits for this.
            self.leave();
        }
        entered
    }

    /// Counts the owner as a reader; the word is closed.
    pub(super) fn enter_as_owner(&self) {
        // Relaxed: what the owner has done itself is ordered before this.
        self.word().fetch_add(READER, Relaxed);
    }

    /// Subtracts one reader; wakes a writer that sleeps until the last reader has left.
    pub(super) fn leave(&self) {
        // Release: what we have seen; pairs with the acquires in `close` and `wait_until_empty`.
        let left = self.word().fetch_sub(READER, Release) - READER;
        if left & COUNT == 0 && left & WAKE != 0 {
            self.wake_writer();
        }
    }

    #[cold]
    fn wake_writer(&self) {
        // Acquire: the name; pairs with the release in `wait_until_empty`. The line may have
        // another use by now, and the name may be any number: then a thread is woken spuriously.
        P::fence(Acquire);
        let name = WaiterId::from_bits(self.0.waiter.due.load(Relaxed));
        if let Some(writer) = name.and_then(|name| arena::<P>().reference(name.index())) {
            P::unpark(writer);
        }
    }

    /// Waits until the word is open, or has been open meanwhile.
    pub(super) fn wait<F: CstForm>(&self) {
        if spin::<P, F, u64>(self.word(), F::MARGIN_NS, |word| word & CLOSED != 0).is_ok() {
            return;
        }
        let me = Node::<P>::take();
        // Relaxed: published by the exchange.
        me.waiter.status.store(PW, Relaxed);
        if self.list(&me) && sleep(&me) == LEADER {
            Sleepers(me.waiter.resume.load(Relaxed)).wake::<P>();
        }
        me.give();
    }

    /// CST-RW-3: puts the caller on the list; returns `false` if the word is open.
    fn list(&self, me: &Node<P>) -> bool {
        let mut seen = self.word().load(Relaxed);
        while seen & CLOSED != 0 {
            me.waiter.resume.store((seen >> LIST_SHIFT) as u32, Relaxed);
            let listed = u64::from(me.bits()) << LIST_SHIFT | seen & u64::from(u32::MAX);
            // Release: our node; pairs with the acquire in `open`.
            match self.word().compare_exchange(seen, listed, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Lets readers in; called by the owner. Returns the first of those that slept.
    pub(super) fn open(&self) -> Leaders {
        // Release: what the owner has done; pairs with the acquires of readers that come in.
        // Acquire: the sleepers' nodes; pairs with the release in `list`.
        Leaders((self.word().fetch_and(COUNT, AcqRel) >> LIST_SHIFT) as u32)
    }

    /// Admits no more readers; called by the owner. Returns whether none is in.
    pub(super) fn close(&self) -> bool {
        // Acquire: pairs with the release in `leave`.
        self.word().fetch_or(CLOSED, Acquire) & COUNT == 0
    }

    /// Waits until no reader is in; called by the owner, which has closed the word.
    pub(super) fn wait_until_empty<F: CstForm>(&self) {
        if spin::<P, F, u64>(self.word(), F::MARGIN_NS, |word| word & COUNT != 0).is_ok() {
            return;
        }
        let me = Node::<P>::take();
        self.0.waiter.due.store(me.bits(), Relaxed);
        // Release: our name and node; pairs with the acquire in `wake_writer`. Acquire: as in
        // `close`.
        while self.word().fetch_or(WAKE, AcqRel) & COUNT != 0 {
            // The reason for the return does not matter: the loop checks the word.
            let _ = P::park(me.waiter, None);
        }
        // Relaxed: a thread that still reads the name wakes a node that is never freed.
        self.word().fetch_and(!WAKE, Relaxed);
        me.give();
    }
}

/// Readers that slept, one per socket, chained by `called`.
#[must_use = "the waiter that was taken off the list must be woken"]
pub(super) struct Leaders(u32);

impl Leaders {
    pub(super) const NONE: Self = Self(0);

    /// Adds the chain `other` to this one.
    pub(super) fn and<P: Platform>(self, other: Self) -> Self {
        match Node::<P>::at(other.0) {
            None => self,
            Some(first) => {
                // Relaxed: the node is ours until it is woken.
                first.waiter.called.store(self.0, Relaxed);
                other
            }
        }
    }

    /// Wakes all of them. Touches only their nodes, nothing of the lock.
    pub(super) fn wake<P: Platform>(self) {
        let mut left = self.0;
        while let Some(first) = Node::<P>::at(left) {
            left = first.waiter.called.load(Relaxed);
            let reference = first.reference();
            // Release: our read of the link happens before the node's next use, and the list is
            // published with it; pairs with the acquire in `sleep`.
            // mutant: seen only where three readers of a socket sleep. With two, the link that the
            // leader reads is 0, and so is what the node had before.
            first.waiter.status.store(LEADER, Release);
            if let Some(reference) = reference {
                P::unpark(reference);
            }
        }
    }
}
