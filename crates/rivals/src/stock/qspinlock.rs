//! The queued spinlock: 4 bytes, a pending bit, and an MCS queue behind it.
//!
//! Source: W. Long, P. Zijlstra, "qspinlock", 2013–2015, as in J. Corbet, "MCS locks and
//! qspinlocks", LWN, 2014.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0 | `locked` | 0 free, 1 held |
//! | 1 | `pending` | 1: a waiter waits beside the queue, and is next |
//! | 2–3 | `tail` | index of the last in the queue, 0 is empty |
//!
//! ```text
//!   0,0,0 ──► 0,0,1 ──► 0,1,1 ──► t,1,1     tail, pending, locked
//!   free      held      one waits  the others queue
//! ```
//!
//! A lock for which two threads contend needs no node. With three threads or more, waiters queue,
//! and the head of the queue spins on the lock.
//!
//! - QSPIN-1: the thread that has changed `locked` from 0 to 1 has the lock.
//! - QSPIN-2: at most one thread waits beside the queue: the thread that has changed `pending` from
//!   0 to
//!   1.
//! - QSPIN-3: the head of the queue takes the lock when it finds `pending` clear, and then leaves
//!   the queue empty, or makes the waiter behind it the head.
//!
//! Departures: in the kernel, an arriving waiter reads all fields by one exchange of the word, and
//! other threads write single fields. The seam (`Platform`) has no mixed-size accesses, so here an
//! arriving waiter reads each field in turn; it may overtake a waiter that comes in between. Unlock
//! is one store of a byte, as in the kernel. Nodes come from the arena, not from four per CPU; if
//! none is free, a waiter spins on the lock, as in the kernel.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use crate::classic::node::Node;

/// The status of a waiter that is not the queue's head.
const WAITING: u32 = 1;
/// The status of the queue's head.
const HEAD: u32 = 0;

/// A queued spinlock, 4 bytes; and a node of 64 bytes for each waiter but the first.
#[repr(C, align(4))]
pub struct QSpinLock<P: Platform> {
    locked: P::U8,
    pending: P::U8,
    tail: P::U16,
}

impl<P: Platform> QSpinLock<P> {
    /// A free lock.
    pub const NEW: Self = Self { locked: P::U8::ZERO, pending: P::U8::ZERO, tail: P::U16::ZERO };

    /// Acquires the lock; spins until the caller has it.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() && !self.wait_pending() {
            self.lock_queued();
        }
    }

    /// Acquires the lock if it is free and no thread waits.
    #[inline]
    pub fn try_lock(&self) -> bool {
        !self.has_waiters() && self.take()
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Release: pairs with the acquires of the next owner.
        self.locked.store(0, Release);
    }

    fn has_waiters(&self) -> bool {
        // Relaxed: it decides about order only.
        self.tail.load(Relaxed) != 0 || self.pending.load(Relaxed) != 0
    }

    fn take(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Spins on the lock until the caller has it.
    fn wait(&self) {
        while !self.take() {
            // Relaxed: the exchange orders.
            self.locked.wait_while(Relaxed, |locked| locked != 0);
        }
    }

    /// QSPIN-2: waits as the pending waiter, if no other thread waits; returns whether the caller
    /// has the lock.
    #[cold]
    fn wait_pending(&self) -> bool {
        // Relaxed, all: `pending` decides about order only.
        if self.has_waiters() || self.pending.compare_exchange(0, 1, Relaxed, Relaxed).is_err() {
            return false;
        }
        self.wait();
        self.pending.store(0, Relaxed);
        true
    }

    #[cold]
    fn lock_queued(&self) {
        let Some(me) = Node::<P>::try_take() else { return self.wait() };
        let Ok(name) = u16::try_from(me.id.index()) else {
            me.give();
            return self.wait();
        };
        // Relaxed: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(WAITING, Relaxed);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that.
        if let Some(previous) = Node::<P>::at(self.tail.swap(name, AcqRel).into()) {
            // Release: our node; pairs with the acquire in `leave`.
            previous.waiter.next.store(name.into(), Release);
            // Relaxed: the turn orders nothing but the queue, and the lock's own word is acquired.
            me.waiter.status.wait_while(Relaxed, |status| status != HEAD);
        }
        // Relaxed: as in `wait_pending`.
        self.pending.wait_while(Relaxed, |pending| pending != 0);
        self.wait();
        self.leave(&me, name);
        me.give();
    }

    /// QSPIN-3: leaves the queue as its head.
    fn leave(&self, me: &Node<P>, name: u16) {
        let next = &me.waiter.next;
        // Relaxed, all: only whether it is zero matters here, and a thread that finds the tail
        // empty reads nothing of our node.
        let alone = next.load(Relaxed) == 0
            && self.tail.compare_exchange(name, 0, Relaxed, Relaxed).is_ok();
        if alone {
            return;
        }
        // Acquire: pairs with the release of the link.
        let next = next.wait_while(Acquire, |next| next == 0);
        if let Some(next) = Node::<P>::at(next) {
            // Relaxed: our last touch of the node. Its owner gives it back after it has read this.
            next.waiter.status.store(HEAD, Relaxed);
        }
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform] QSpinLock<P>);
