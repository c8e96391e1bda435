//! The queue of waiters: MCS, by 32-bit names instead of pointers, with nodes that may be
//! abandoned.
//!
//! ```text
//!   lock.tail ─────────────────────────────────────┐
//!                                                  ▼
//!   head ──next──► waiter ──next──► (abandoned) ──next──► last
//! ```
//!
//! - QUEUE-1: the first node is the head's, or that of an owner which hands the lock over (PASS-1);
//!   it is never abandoned. A queue that is not empty has such a node, or its first arriving waiter
//!   is about to be the head: a waiter that leaves as the head first makes the next waiter the
//!   head, or leaves that to an arriving waiter, which finds the queue closed.
//! - QUEUE-2: `next` of a node is written once by the waiter that comes behind it; after that only
//!   by the shuffler, and only if the node is behind the shuffler (or is it) and not the tail.
//! - QUEUE-3: a node is given back by its waiter; or, the first of a cohort, by the last owner that
//!   had its place; or, abandoned, by the head that passes it; or, closed, by the arriving waiter
//!   that finds it so.
//!
//! A waiter that leaves the queue as its head may have a successor that has exchanged the tail and
//! not linked itself yet: the successor may have lost its CPU in between, or sit in a signal
//! handler. The head does not wait for it. It closes `next` instead, and the arriving waiter, which
//! finds that, is the head.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, Waiter, WaiterId};

use super::cohort;
use super::status;
use crate::arena;
use crate::policy::{Policy, Waiting};

/// `next` of a node whose waiter has left the queue ahead of an arriving waiter that has not linked
/// itself. It is not a name, because no epoch is 0.
const CLOSED: u32 = 1;

/// A node and its name.
pub(super) struct Place<P: Platform> {
    pub(super) id: WaiterId,
    pub(super) node: &'static Waiter<P>,
    /// The node's generation when it was looked up.
    pub(super) generation: u32,
}

impl<P: Platform> Clone for Place<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Place<P> {}

impl<P: Platform> PartialEq for Place<P> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Where a lock keeps the last waiter: a word of 16 or of 32 bits.
pub(super) trait Tail<P: Platform>: Sync {
    /// Puts `id` last. Returns `None` if the queue was empty, or if the previous tail is not of
    /// this process: a parent's queue after a fork.
    fn join(&self, id: WaiterId) -> Option<Place<P>>;
    /// Empties the queue if `id` is last.
    fn clear(&self, id: WaiterId) -> bool;
    /// Returns whether `id` is last, as far as the caller can see.
    fn is(&self, id: WaiterId) -> bool;
}

impl<P: Platform> Place<P> {
    /// Returns the place that these bits name in this process; `None` for 0 and for names of other
    /// processes.
    pub(super) fn at(bits: u32) -> Option<Self> {
        let id = WaiterId::from_bits(bits)?;
        Some(Self::of(id, arena::<P>().resolve(id)?))
    }

    /// Returns the place of the node with this index, as this process names it; `None` for 0 and
    /// for a node that was never used.
    pub(super) fn at_index(index: u32) -> Option<Self> {
        let node = arena::<P>().resolve_index(index)?;
        Some(Self::of(WaiterId::new(P::epoch(), index), node))
    }

    fn of(id: WaiterId, node: &'static Waiter<P>) -> Self {
        // Relaxed: a thread that has the name of a live node has acquired the node.
        Self { id, node, generation: node.generation.load(Relaxed) }
    }

    /// Takes a node for a wait of the caller. Returns `None` if all nodes are in use.
    pub(super) fn take<Q: Policy>(policy: Q) -> Option<Self> {
        let id = arena::<P>().take()?;
        let place = Self::of(id, arena::<P>().resolve(id)?);
        // An even generation: a fork in a signal handler has just wiped the node.
        if place.generation.is_multiple_of(2) {
            return None;
        }
        let node = place.node;
        // Relaxed: published by the exchange of the tail.
        node.next.store(0, Relaxed);
        node.batch.store(0, Relaxed);
        node.resume.store(0, Relaxed);
        node.queue.store(0, Relaxed);
        node.wants.store(0, Relaxed);
        place.note(policy);
        status::begin(node);
        Some(place)
    }

    /// Notes what the policy will sort the caller by. `self` is the caller's place.
    pub(super) fn note<Q: Policy>(self, policy: Q) {
        if policy.notes::<P>() {
            self.node.passed.store(0, Relaxed);
            policy.on_wait(Waiting::of(self.node));
        }
    }

    /// Gives the node back, unless it is lost: a lost node belongs to no waiter.
    pub(super) fn give(self) {
        if self.is_lost() {
            return;
        }
        let status = status::load(self.node);
        if status.closed() && cohort::is_left_to_comer(self.node) {
            return;
        }
        if status.abandoned() {
            arena::<P>().reclaim(self.id);
        } else {
            arena::<P>().give(self.id);
        }
    }

    /// Joins the queue, as its head if it was empty or its last waiter has just left it. Returns
    /// the place before it, if the caller is not the head. That place may belong to another wait at
    /// once.
    pub(super) fn join(self, tail: &impl Tail<P>) -> Option<Self> {
        let previous = tail.join(self.id);
        if self.link(previous) {
            previous
        } else {
            status::begin_as_head(self.node);
            None
        }
    }

    /// Links the place, which is already the queue's tail, behind `previous`, the last waiter
    /// before it. Returns `false` if there was no such waiter, or it has just left: then this place
    /// is the head's.
    pub(super) fn link(self, previous: Option<Self>) -> bool {
        let Some(previous) = previous else { return false };
        // Release: publishes our node to the head, which acquires it in `next`. Acquire: what the
        // waiter that closed the queue has done as its head; pairs with the release in `leave`.
        let link = previous.node.next.compare_exchange(0, self.id.bits(), Release, Acquire);
        if link.is_err() {
            previous.give();
        }
        link.is_ok()
    }

    /// Returns the place behind this one, if it is linked already.
    pub(super) fn next(self) -> Option<Self> {
        // Acquire: pairs with the release in `link`. A shuffler's link is visible already, because
        // the role or the headship has come from the shuffler.
        Self::at(self.node.next.load(Acquire))
    }

    /// Ends the caller's place at the head of the queue, and returns the place behind it, if any.
    /// The node is given back, or left to an arriving waiter, which gives it back.
    pub(super) fn leave(self, tail: &impl Tail<P>) -> Option<Self> {
        if let Some(next) = self.next() {
            self.give();
            return Some(next);
        }
        if tail.clear(self.id) {
            self.give();
            return None;
        }
        // Release: pairs with the acquire of the arriving waiter in `link`, which is the head then.
        // Acquire: as in `next`.
        match self.node.next.compare_exchange(0, CLOSED, Release, Acquire) {
            Ok(_) => None,
            Err(next) => {
                self.give();
                Self::at(next)
            }
        }
    }

    /// Returns whether the place's waiter sleeps, and is not the head; may be stale at once.
    pub(super) fn sleeps(self) -> bool {
        status::load(self.node).parked()
    }

    /// Returns whether the node was taken from its waiter: by a `fork` in a signal handler that
    /// interrupted the wait, which wipes it in the child.
    pub(super) fn is_lost(self) -> bool {
        self.node.generation.load(Relaxed) != self.generation
    }
}

impl<P: Platform> Tail<P> for TailId<P> {
    fn join(&self, id: WaiterId) -> Option<Place<P>> {
        // Release: publishes our node to the next arriving waiter. Acquire: pairs with that
        // release, because we write to the node that we find.
        Place::at(self.0.swap(id.bits(), AcqRel))
    }

    fn clear(&self, id: WaiterId) -> bool {
        // Release: a waiter that finds the queue empty comes after us, with what it writes to
        // `head`; pairs with the acquire in `join`.
        self.0.compare_exchange(id.bits(), 0, Release, Relaxed).is_ok()
    }

    fn is(&self, id: WaiterId) -> bool {
        // Relaxed: a tail that was last stays last or has a successor; see `shuffle`.
        self.0.load(Relaxed) == id.bits()
    }
}

/// A tail of 32 bits: the name of the last waiter, its epoch included.
#[repr(transparent)]
pub(super) struct TailId<P: Platform>(P::U32);

impl<P: Platform> TailId<P> {
    pub(super) const NEW: Self = Self(P::U32::ZERO);

    /// Puts `before` last in place of `id`, if `id` is last. For a caller that has the shuffling
    /// role, or is the head where no waiter has the role; `before` has no link behind it.
    pub(super) fn retreat(&self, id: WaiterId, before: WaiterId) -> bool {
        // Release: the link that was cleared comes before the link that an arriving waiter puts
        // there; pairs with the acquire in `join`.
        self.0.compare_exchange(id.bits(), before.bits(), Release, Relaxed).is_ok()
    }

    /// Returns the name of the last waiter.
    pub(super) fn name(&self) -> Option<WaiterId> {
        WaiterId::from_bits(self.0.load(Relaxed))
    }
}

/// A tail of 16 bits: the index of the last waiter. Waiters with larger indices can't join.
#[repr(transparent)]
pub(super) struct TailIndex<P: Platform>(P::U16);

impl<P: Platform> TailIndex<P> {
    pub(super) const NEW: Self = Self(P::U16::ZERO);

    /// Returns whether `id` fits.
    pub(super) fn fits(id: WaiterId) -> bool {
        id.index() <= u32::from(u16::MAX)
    }

    /// Returns whether no thread waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    fn bits(id: WaiterId) -> u16 {
        id.index() as u16
    }
}

impl<P: Platform> Tail<P> for TailIndex<P> {
    fn join(&self, id: WaiterId) -> Option<Place<P>> {
        // Orderings as in `join` of `TailId`.
        let index = u32::from(self.0.swap(Self::bits(id), AcqRel));
        Place::at_index(index)
    }

    fn clear(&self, id: WaiterId) -> bool {
        // Relaxed: the spinlock keeps nothing that a later head must see; its lock byte does.
        self.0.compare_exchange(Self::bits(id), 0, Relaxed, Relaxed).is_ok()
    }

    fn is(&self, id: WaiterId) -> bool {
        self.0.load(Relaxed) == Self::bits(id)
    }
}
