//! The hierarchical CLH lock (HCLH): one queue for each socket, spliced into a global queue.
//!
//! Source: V. Luchangco, D. Nussbaum, N. Shavit, "A Hierarchical CLH Queue Lock", Euro-Par 2006.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `tail` | name of the last in the global queue; 0 is free |
//! | 4–7 | `owner` | name of the owner's node; means nothing while the lock is free |
//! | 8–9 | `spliced` | the socket in whose queue that node is `SPLICED`; `NO_SOCKET` if it is not |
//! | 64– | `sockets` | for each socket, 64 bytes apart: name of the last in its queue; 0 is none |
//!
//! | in a node | meaning |
//! |---|---|
//! | `status` | `HELD`: it has not unlocked; `SPLICED`: it ends a queue that was spliced |
//! | `wants` | of a node that is `SPLICED`: how many still look at it or may |
//!
//! ```text
//!   global    owner ◄── a2 ◄── a3 ◄── b1 ◄── b2      b2 is SPLICED, and so is a3
//!                               ▲
//!   socket a                    └·· a4 ◄── a5        a4 sees that a3 is SPLICED: it is the master
//! ```
//!
//! A waiter watches the node before its own in the socket's queue. If that node is released, the
//! waiter has the lock. If it is `SPLICED`, the waiter is the master of those behind it: it appends
//! the whole queue, as long as it is by then, to the global queue, marks its end, and watches the
//! node that is before its own there. It may first wait `GATHER_NS` for others to join. Without
//! that it takes along only those that came while it joined, so that few hand-overs stay on the
//! socket: cohort locks improve on that.
//!
//! - HCLH-1: a node is marked before any waiter behind its master can own the lock: an owner knows
//!   whether its node is `SPLICED`.
//! - HCLH-2: a node that is not `SPLICED` is watched only by the waiter behind it, which gives it
//!   back. A node that is `SPLICED` has two watchers, one behind it in each queue; the last of them
//!   gives it back.
//! - HCLH-3: where no waiter is behind a node, in either queue, its owner takes it out of the tail
//!   there and takes the place of the watcher.
//!
//! The published lock gives a node that was seen released to its watcher at once, though the
//! socket's tail may still name it, and tells by the node's socket whether it was reused. Here all
//! locks share the nodes, so the socket would not tell; the watchers are counted instead. And as in
//! [`Clh`](crate::classic::Clh), a free lock owns no node.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

use super::queue;
use crate::classic::node::Node;
use crate::classic::stay_away;

/// The owner of the node has not unlocked.
const HELD: u32 = 1;
/// The node was the last of its socket's queue when that queue was spliced.
const SPLICED: u32 = 2;

/// `spliced` of an owner whose node is not `SPLICED`.
const NO_SOCKET: u16 = u16::MAX;

/// An HCLH lock of `SOCKETS` queues; on a machine with more sockets, some share a queue. 64 bytes,
/// 64 bytes for each queue, and a node of 64 bytes for the owner and for each waiter. The first of
/// a socket's queue waits for `GATHER_NS` nanoseconds before it appends that queue to the global
/// one.
#[repr(C, align(64))]
pub struct Hclh<P: Platform, const SOCKETS: usize = 8, const GATHER_NS: u32 = 0> {
    tail: P::U32,
    owner: P::U32,
    spliced: P::U16,
    sockets: [Socket<P>; SOCKETS],
}

/// The tail of one socket's queue.
#[repr(C, align(64))]
struct Socket<P: Platform>(P::U32);

impl<P: Platform, const SOCKETS: usize, const GATHER_NS: u32> Hclh<P, SOCKETS, GATHER_NS> {
    /// A free lock.
    pub const NEW: Self = {
        assert!(0 < SOCKETS && SOCKETS < NO_SOCKET as usize, "a machine has a socket");
        Self {
            tail: P::U32::ZERO,
            owner: P::U32::ZERO,
            spliced: P::U16::ZERO,
            sockets: [const { Socket(P::U32::ZERO) }; SOCKETS],
        }
    };

    /// Joins the queue of the caller's socket and spins until the caller has the lock. Naps first
    /// while no node is free for the caller.
    pub fn lock(&self) {
        let number = queue::number::<P>(SOCKETS);
        let me = Node::take();
        Self::begin(&me);
        // Release: our status, to the waiter behind us. Acquire: pairs with that.
        let previous = Node::<P>::at(self.sockets[number].0.swap(me.bits(), AcqRel));
        if !previous.is_some_and(Self::has_handed_over) {
            self.splice(number);
        }
        // Relaxed: HCLH-1.
        let spliced = me.waiter.status.load(Relaxed) & SPLICED != 0;
        self.own(&me, if spliced { number as u16 } else { NO_SOCKET });
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks, and joins
    /// no socket's queue. The paper has no such function.
    pub fn try_lock(&self) -> bool {
        let me = Node::alone_in(&self.tail, Self::begin);
        me.inspect(|me| self.own(me, NO_SOCKET)).is_some()
    }

    /// Releases the lock; never waits.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        let me = Node::<P>::of_owner(&self.owner);
        // Relaxed: only the owner accesses it, as in `of_owner`.
        let socket = self.sockets.get(usize::from(self.spliced.load(Relaxed)));
        if let Some(Socket(tail)) = socket {
            // HCLH-3. Relaxed: a waiter that finds the queue empty is ordered after us by the
            // global queue.
            if tail.compare_exchange(me.bits(), 0, Relaxed, Relaxed).is_ok() {
                // Relaxed: the remaining watcher is ordered after us.
                me.waiter.wants.store(1, Relaxed);
            }
        }
        let spliced = socket.map_or(0, |_| SPLICED);
        // Relaxed: a check, so that the exchange seldom fails. Release: what we have done, to the
        // arriving waiter that finds the queue empty; pairs with the acquires in `splice` and
        // `try_lock`.
        let alone = self.tail.load(Relaxed) == me.bits()
            && self.tail.compare_exchange(me.bits(), 0, Release, Relaxed).is_ok();
        if alone {
            Self::looked(me, spliced);
        } else {
            // Release: what we have done, to the waiter behind us.
            me.waiter.status.store(spliced, Release);
        }
    }

    /// Waits until `previous`, the node before the caller's in its socket's queue, was released or
    /// spliced; returns whether the caller has the lock by that.
    fn has_handed_over(previous: Node<P>) -> bool {
        // Acquire: pairs with the releases of the status in `unlock` and `splice`.
        let status = previous.waiter.status.wait_while(Acquire, |status| status == HELD);
        Self::looked(previous, status & SPLICED);
        status & SPLICED == 0
    }

    /// Appends the queue of a socket, of which the caller is the first, to the global queue, and
    /// waits until the caller has the lock.
    fn splice(&self, number: usize) {
        // Relaxed: a guess. If the lock is free there is nothing to wait for.
        if self.tail.load(Relaxed) != 0 {
            stay_away::<P>(GATHER_NS);
        }
        // Acquire: the node of the last; pairs with the release of the waiter that has joined.
        let last = self.sockets[number].0.load(Acquire);
        let Some(end) = Node::<P>::at(last) else { unreachable!("we are in the queue") };
        // Relaxed: published with the status.
        end.waiter.wants.store(2, Relaxed);
        // Release: the status and the count, to the waiter that comes behind `end` in the global
        // queue. Acquire: pairs with that; and if the queue was empty, with the release of the tail
        // in `unlock`.
        let previous = Node::<P>::at(self.tail.swap(last, AcqRel));
        // Release: the count, to the next master of the socket; pairs with the acquire in
        // `has_handed_over`.
        end.waiter.status.store(HELD | SPLICED, Release);
        if let Some(previous) = previous {
            // Acquire: pairs with the release of the status in `unlock`.
            let status = previous.waiter.status.wait_while(Acquire, |status| status & HELD != 0);
            Self::looked(previous, status & SPLICED);
        }
    }

    /// Ends the caller's watch of `node`. The last of two watchers gives it back (HCLH-2).
    fn looked(node: Node<P>, spliced: u32) {
        // Acquire and release: what the other watcher has read of the node happens before its next
        // use.
        // mutant: only a load that reads what depends on it would tell, of which models have none.
        if spliced == 0 || node.waiter.wants.fetch_sub(1, AcqRel) == 1 {
            node.give();
        }
    }

    fn begin(me: &Node<P>) {
        // Relaxed: published with the node's name.
        me.waiter.status.store(HELD, Relaxed);
    }

    fn own(&self, me: &Node<P>, spliced: u16) {
        // Relaxed, both: only the owner uses them; the next owner writes them after us.
        self.owner.store(me.bits(), Relaxed);
        self.spliced.store(spliced, Relaxed);
    }
}

antiphon_sync::impl_lock!(
    unsafe [P: Platform, const SOCKETS: usize, const GATHER_NS: u32] Hclh<P, SOCKETS, GATHER_NS>
);
