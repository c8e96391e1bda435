//! The queue of waiters that spin until an owner releases: an MCS queue that a waiter may leave
//! before its turn.
//!
//! Source: the kernel's `Documentation/locking/mutex-design.rst`, "an MCS lock … only one spinner
//! at a time", and T. Chen, D. Bueso, P. Zijlstra, J. Low, "optimistic spin queue", 2014. There, a
//! waiter that leaves takes its node out of a doubly linked queue. Here it marks its node, and the
//! waiter that hands the turn on skips the node and gives it back.
//!
//! ```text
//!   SPINS ── turn ──► TURN
//!     │ its slice is over
//!     └──► LEFT       the node is the queue's
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

use crate::classic::node::Node;

const SPINS: u32 = 1;
const TURN: u32 = 0;
const LEFT: u32 = 2;

/// Length of one spin, in nanoseconds, after which a spinner asks again whether it may go on.
pub(super) const PIECE_NS: u32 = 2_000;

/// Returns whether the caller may go on spinning, because no other thread wants its CPU. In the
/// kernel, a thread that is woken on that CPU preempts the spinner.
pub(super) fn may_spin<P: Platform>() -> bool {
    P::slice_left_ns() == u32::MAX
}

/// A queue of spinners, 4 bytes.
#[repr(transparent)]
pub(super) struct SpinQueue<P: Platform> {
    tail: P::U32,
}

impl<P: Platform> SpinQueue<P> {
    pub(super) const NEW: Self = Self { tail: P::U32::ZERO };

    /// Joins the queue and waits for the caller's turn. Returns `None` if the caller should spin no
    /// longer, or no node is free.
    pub(super) fn enter(&self) -> Option<Node<P>> {
        let me = Node::<P>::try_take()?;
        // Relaxed: published with the node's name.
        me.waiter.next.store(0, Relaxed);
        me.waiter.status.store(SPINS, Relaxed);
        // Release: our node, to the arriving waiter that finds its name here. Acquire: pairs with
        // that.
        let Some(previous) = Node::<P>::at(self.tail.swap(me.bits(), AcqRel)) else {
            return Some(me);
        };
        // Release: our node; pairs with the acquire in `leave`.
        // mutant: the words of a node are new in models: there is no older value of them to read.
        previous.waiter.next.store(me.bits(), Release);
        let status = &me.waiter.status;
        while may_spin::<P>() {
            // Relaxed: the turn orders nothing but the queue, and the lock's own word is acquired.
            if status.spin_while(Relaxed, Budget::ns(PIECE_NS), |seen| seen == SPINS).is_ok() {
                return Some(me);
            }
        }
        // Relaxed: our last touch of the node. The owner of the turn gives it back after it has
        // read that we left, so the next use of the node is behind both.
        let left = status.compare_exchange(SPINS, LEFT, Relaxed, Relaxed).is_ok();
        (!left).then_some(me)
    }

    /// Passes the turn on, and gives back the nodes of waiters that have left.
    pub(super) fn leave(&self, me: Node<P>) {
        let mut at = me;
        loop {
            let next = &at.waiter.next;
            // Relaxed: only whether it is zero matters here. Release: our node is ours to give;
            // pairs with the acquire in `enter`.
            let last = next.load(Relaxed) == 0
                && self.tail.compare_exchange(at.bits(), 0, Release, Relaxed).is_ok();
            // Acquire: pairs with the release of the link.
            let next = if last { 0 } else { next.wait_while(Acquire, |next| next == 0) };
            at.give();
            let Some(next) = Node::<P>::at(next) else { return };
            // Relaxed, both: where the exchange succeeds it is our last touch of the node; where it
            // fails, the node's words came with the link.
            let status = &next.waiter.status;
            if status.compare_exchange(SPINS, TURN, Relaxed, Relaxed).is_ok() {
                return;
            }
            at = next;
        }
    }
}
