//! The compact NUMA-aware lock: an MCS queue from which the owner takes waiters that are far away.
//!
//! Source: D. Dice, A. Kogan, "Compact NUMA-aware Locks", EuroSys 2019; without its shuffle
//! reduction, which searches for neighbours less often while no waiter is set aside.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the main queue; 0 is free |
//! | 4–7 | `owner` | name of the owner's node; means nothing while the lock is free |
//!
//! | in a node | meaning |
//! |---|---|
//! | `status` | `WAITING`; then `GRANTED`, or the name of the first that was set aside |
//! | `next` | the waiter behind it, in either queue |
//! | `socket` | where the waiter is; `NOT_ASKED` of one that did not have to wait |
//! | `resume` | of the first that was set aside: name of the last |
//!
//! ```text
//!   owner ──► far ──► far ──► near ──► …        main queue, up to lock.tail
//!     │                                 before the owner grants `near` the lock
//!     ▼
//!   owner ──► near ──► …                        main queue
//!     └─status─► far ──► far                    set aside; the name goes on with the lock
//! ```
//!
//! The same word grants the lock and names the queue that was set aside: no other state is shared.
//! The owner searches for the next waiter of its own socket as it unlocks, and sets those before it
//! aside. They come back in front of the main queue if no waiter of the socket is left, or at
//! random, once in `KEEP + 1` unlocks.
//!
//! - CNA-1: a waiter is in one of the two queues, once, and only the owner moves it.
//! - CNA-2: the tail of the main queue is never moved: a waiter that is set aside has another
//!   behind it.
//! - CNA-3: the last that was set aside links to none.
//! - CNA-4: the main queue ends only if no waiter is set aside; otherwise those become the main
//!   queue.
//!
//! As in [`Mcs`](crate::classic::Mcs), the owner's name stands beside the tail: in the published
//! lock the thread that unlocks passes the node in again, and the lock is one pointer of 8 bytes.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use crate::classic::node::Node;

/// The status of a waiter that does not have the lock.
const WAITING: u32 = 0;
/// The status of an owner, if no waiter is set aside. Any other value is a name.
const GRANTED: u32 = 1;
/// The socket of an owner that did not have to wait: it is determined when needed.
const NOT_ASKED: u16 = u16::MAX;

const _: () = assert!(WaiterId::new(1, 1).bits() > GRANTED);

/// A CNA lock of 8 bytes, and a node of 64 bytes for the owner and for each waiter. Waiters that
/// were set aside come back once in `KEEP + 1` unlocks, which must be a power of two.
#[repr(C)]
pub struct Cna<P: Platform, const KEEP: u32 = 0xFFFF> {
    tail: P::U32,
    owner: P::U32,
}

impl<P: Platform, const KEEP: u32> Cna<P, KEEP> {
    /// A free lock.
    pub const NEW: Self = {
        assert!((KEEP + 1).is_power_of_two(), "a mask of low bits");
        Self { tail: P::U32::ZERO, owner: P::U32::ZERO }
    };

    /// Joins the queue and spins until the lock is granted. Naps first while no node is free for
    /// the caller.
    pub fn lock(&self) {
        let me = Node::take();
        Self::begin(&me);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that, because we write to the node that we find; if there is none, with the release in
        // `leave`.
        if let Some(previous) = Node::<P>::at(self.tail.swap(me.bits(), AcqRel)) {
            // Relaxed: published by the link.
            me.waiter.status.store(WAITING, Relaxed);
            me.waiter.socket.store(here::<P>(), Relaxed);
            // Release: our node, to the owner that walks along the queue.
            previous.waiter.next.store(me.bits(), Release);
            // Acquire: pairs with the releases of the status in `unlock` and `leave`.
            me.waiter.status.wait_while(Acquire, |status| status == WAITING);
        }
        self.own(&me);
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks.
    pub fn try_lock(&self) -> bool {
        let me = Node::alone_in(&self.tail, Self::begin);
        me.inspect(|me| self.own(me)).is_some()
    }

    /// Releases the lock: to the next waiter of the owner's socket, or to the first waiter that was
    /// set aside, or to the next in the queue. Spins for a moment if a waiter is just joining.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        let me = Node::<P>::of_owner(&self.owner);
        // Relaxed: only whether it is zero matters here.
        if me.waiter.next.load(Relaxed) != 0 || !self.leave(&me) {
            // Acquire: pairs with the release of the link.
            let next = me.waiter.next.wait_while(Acquire, |next| next == 0);
            if let Some((successor, status)) = Self::successor(&me, next) {
                // Release: what we have done, and both queues; pairs with the acquire in `lock`.
                successor.waiter.status.store(status, Release);
            }
        }
        me.give();
    }

    /// Ends the main queue, in which the caller is alone; returns `false` if a waiter has joined
    /// (CNA-4).
    fn leave(&self, me: &Node<P>) -> bool {
        let first = Self::first_aside(me);
        // Relaxed: only the owner accesses the queue that was set aside.
        let last = first.as_ref().map_or(0, |first| first.waiter.resume.load(Relaxed));
        // Release: what we have done, to the arriving waiter that finds the queue empty; and what
        // we know of the node of `last`, to the arriving waiter that links itself behind it. Pairs
        // with `lock`.
        if self.tail.compare_exchange(me.bits(), last, Release, Relaxed).is_err() {
            return false;
        }
        if let Some(first) = first {
            // Release: as in `unlock`.
            first.waiter.status.store(GRANTED, Release);
        }
        true
    }

    /// Returns the waiter that gets the lock next, and its new status. `next` is behind the owner.
    fn successor(me: &Node<P>, next: u32) -> Option<(Node<P>, u32)> {
        if P::random() & KEEP != 0
            && let Some(near) = Self::find_near(me, next)
        {
            // Relaxed: our own.
            return Some((near, me.waiter.status.load(Relaxed).max(GRANTED)));
        }
        let Some(first) = Self::first_aside(me) else {
            return Some((Node::at(next)?, GRANTED));
        };
        let last = Node::<P>::at(first.waiter.resume.load(Relaxed))?;
        // Relaxed: handed on with the lock.
        last.waiter.next.store(next, Relaxed);
        Some((first, GRANTED))
    }

    /// Finds the first waiter of the owner's socket, and sets the waiters before it aside.
    fn find_near(me: &Node<P>, next: u32) -> Option<Node<P>> {
        let mine = match me.waiter.socket.load(Relaxed) {
            NOT_ASKED => here::<P>(),
            socket => socket,
        };
        let mut at = Node::<P>::at(next)?;
        let mut before: Option<Node<P>> = None;
        // Relaxed: published by the link.
        while at.waiter.socket.load(Relaxed) != mine {
            // Acquire: pairs with the release of the link.
            let behind = Node::at(at.waiter.next.load(Acquire))?;
            before = Some(at);
            at = behind;
        }
        if let Some(last) = before {
            Self::set_aside(me, next, &last);
        }
        Some(at)
    }

    /// Puts the nodes from `first` to `last` behind those that were set aside.
    fn set_aside(me: &Node<P>, first: u32, last: &Node<P>) {
        // Relaxed, all: only the owner accesses them, and they are handed on with the lock.
        last.waiter.next.store(0, Relaxed);
        let head = match Self::first_aside(me) {
            Some(head) => {
                if let Some(old) = Node::<P>::at(head.waiter.resume.load(Relaxed)) {
                    old.waiter.next.store(first, Relaxed);
                }
                Some(head)
            }
            None => {
                me.waiter.status.store(first, Relaxed);
                Node::at(first)
            }
        };
        if let Some(head) = head {
            head.waiter.resume.store(last.bits(), Relaxed);
        }
    }

    fn first_aside(me: &Node<P>) -> Option<Node<P>> {
        // Relaxed: our own, acquired with the lock.
        Node::at(me.waiter.status.load(Relaxed)).filter(|first| first.bits() > GRANTED)
    }

    fn begin(me: &Node<P>) {
        // Relaxed: published with the node's name, or our own.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(GRANTED, Relaxed);
        me.waiter.socket.store(NOT_ASKED, Relaxed);
    }

    fn own(&self, me: &Node<P>) {
        // Relaxed: only the owner uses it; the next owner writes it after us.
        self.owner.store(me.bits(), Relaxed);
    }
}

/// Returns the socket of the caller.
fn here<P: Platform>() -> u16 {
    P::socket().0 as u16
}

antiphon_sync::impl_lock!(unsafe [P: Platform, const KEEP: u32] Cna<P, KEEP>);
