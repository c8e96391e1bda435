//! The queue of sockets: an MCS queue of lines, whose waiters sleep when their time slice is over.
//!
//! A line is one of a socket's two, or the node of a thread that queues for itself. At most two
//! lines of each socket wait here at a time, so none is passed over: the lock goes to the next
//! line, and its waiter is woken if it sleeps.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform};

use super::CstForm;
use super::parking::{LOCK, PW, UW, fall_asleep, sleep, spin};
use crate::classic::node::Node;

/// The owner of the lock, and the sockets that wait for it.
#[repr(transparent)]
pub(super) struct Queue<P: Platform> {
    tail: P::U32,
}

impl<P: Platform> Queue<P> {
    pub(super) const NEW: Self = Self { tail: P::U32::ZERO };

    /// Returns whether the lock is free; the result may be stale at once.
    pub(super) fn is_free(&self) -> bool {
        // Relaxed: a caller that acts on it checks again.
        self.tail.load(Relaxed) == 0
    }

    /// Joins the queue with the caller's `line`, and waits for the lock.
    pub(super) fn enter<F: CstForm>(&self, line: &Node<P>) {
        begin(line);
        // Release: the line, to the arriving waiter that finds its name here. Acquire: pairs with
        // that; if the queue was empty, with the release in `leave`.
        if let Some(previous) = Node::<P>::at(self.tail.swap(line.bits(), AcqRel)) {
            // Release: the line, to the owner that grants us the lock; pairs with the acquire in
            // `leave`.
            previous.waiter.next.store(line.bits(), Release);
            wait::<P, F>(line);
        }
    }

    /// Does what [`enter`](Self::enter) does if the lock is free; never waits.
    pub(super) fn try_enter(&self, line: &Node<P>) -> bool {
        begin(line);
        // Orderings as in `enter`.
        self.tail.compare_exchange(0, line.bits(), AcqRel, Relaxed).is_ok()
    }

    /// Gives the lock to the next line, or leaves it free. This is the last touch of the lock
    /// (CST-2).
    pub(super) fn leave(&self, line: &Node<P>) {
        let next = &line.waiter.next;
        // Relaxed: only whether it is zero matters here. Release: what we have done, to the
        // arriving waiter that finds the queue empty; pairs with the acquire in `enter`.
        let alone = next.load(Relaxed) == 0
            && self.tail.compare_exchange(line.bits(), 0, Release, Relaxed).is_ok();
        if alone {
            return;
        }
        // Acquire: pairs with the release of the link.
        let next = next.wait_while(Acquire, |next| next == 0);
        if let Some(next) = Node::<P>::at(next) {
            let sleeper = next.reference();
            // Release: pairs with the acquires in `spin` and `sleep`.
            let was = next.waiter.status.swap(LOCK, Release);
            if let Some(sleeper) = sleeper.filter(|_| was == PW) {
                P::unpark(sleeper);
            }
        }
    }

    /// In the child of a fork: discards an owner that was a thread of the parent.
    pub(super) fn forget(&self) {
        // Relaxed: there is nothing to publish. The parent's writes are in the child's memory.
        self.tail.store(0, Relaxed);
    }
}

fn begin<P: Platform>(line: &Node<P>) {
    // Relaxed: published with the line's name.
    line.waiter.next.store(0, Relaxed);
    line.waiter.status.store(UW, Relaxed);
}

fn wait<P: Platform, F: CstForm>(line: &Node<P>) {
    // The line's turn is a few batches away, and all waiters of its socket wait for it: the waiter
    // keeps its CPU for its slice, even if other threads want that CPU. If it slept whenever
    // another thread wants its CPU, it would return with the lock before a waiter that was woken
    // there has had it, and that waiter would have to sleep again each time.
    let spun = spin::<P, F, u32>(&line.waiter.status, F::PIECE_NS, |status| status == UW);
    if spun.is_err() && fall_asleep(line).is_ok() {
        let _ = sleep(line);
    }
}
