//! Setting sleeping waiters aside while the mutex is handed over.
//!
//! Sources: Kashyap, Min and Kim, "Scalable NUMA-aware Blocking Synchronization Primitives" (ATC
//! 2017; its talk is `004_…`), for the aim: no wake-up on the path of the lock, as many waiters
//! awake as there are CPUs, and sleepers that take turns with them. Dice and Kogan, "Compact
//! NUMA-aware Locks" (EuroSys 2019), for a second queue that owners hand on with the lock.
//!
//! An owner that hands the lock over and finds the next waiter asleep takes it out of the queue,
//! and tries the waiter behind it. The waiters that were taken out stand in a separate list, in the
//! order in which they were taken out:
//!
//! ```text
//!   queue:   OWNER's first ──next──► up ──► up ──► …
//!               │ cpu, rank
//!               ▼
//!   aside:   asleep ──next──► asleep ──► …            no other thread sees this list
//! ```
//!
//! The owner's place in the queue names the list: the first in `cpu` and the last in `rank`, two
//! fields that have no other meaning in an owner's node. The list needs no other memory, and goes
//! from owner to owner with the place.
//!
//! At the end of each cohort's turn, or equally often where there are no cohorts, the first waiter
//! of the list is *turned out*: it is woken, and joins the queue or a cohort again, as an arriving
//! waiter does. So it is awake when the lock comes to it. Where threads outnumber CPUs, another
//! waiter goes to sleep in exchange, because its CPU is wanted (LINGER-3).
//!
//! - ASIDE-1: only the owner that has the first place of the queue reads or writes the list; it
//!   hands the list on with the place.
//! - ASIDE-2: a waiter that was turned out has a wake coming, and is in no list. Its node is its
//!   own again.
//! - ASIDE-3: an owner that gives its place up first puts the list into the queue, ahead of waiters
//!   that came later. So whenever the lock can be free, each waiter stands in the queue, in a
//!   cohort, or has a wake coming; and a sleeping waiter is not passed by again and again as others
//!   begin to hand over and give up (`models/handover.pml`).
//! - ASIDE-4: a waiter that is set aside has no shuffling role: it would move others in a list that
//!   is not the queue. The role is taken back while the waiter sleeps; a waiter that is awake is
//!   handed the lock. The role comes into being at a head again (INV-2).
//! - ASIDE-5: a waiter that is set aside leads no cohort, and no word of the arena names it.
//!
//! Words of the list are loaded and stored relaxed: the list is the owner's, and is handed on with
//! the lock. A waiter in it that gives up, or takes a lock that was left free, leaves its node
//! there as in the queue. Waiters that a broadcast has moved are not set aside, because they have
//! an order to keep (MOVE-2); nor are those whose index is longer than a name.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Platform, WaiterRef};

use super::cohort::Cohorts;
use super::form::Form;
use super::mutex::{PASS, ShflMutex};
use super::queue::{Place, Tail};
use super::status::{self, Offer};
use crate::arena;
use crate::policy::Policy;

/// Returns the place with this name; `None` for 0.
fn at<P: Platform>(name: u16) -> Option<Place<P>> {
    Place::at_index(name.into())
}

impl<P: Platform, Q: Policy, F: Form> ShflMutex<P, Q, F> {
    /// Begins an empty list. Called by an owner that begins to hand the lock over.
    pub(super) fn begin_list(first: Place<P>) {
        first.node.cpu.store(0, Relaxed);
        first.node.rank.store(0, Relaxed);
    }

    /// Hands the list on to `next`, which will have the place of `first`.
    pub(super) fn hand_list_on(first: Place<P>, next: Place<P>) {
        next.node.cpu.store(first.node.cpu.load(Relaxed), Relaxed);
        next.node.rank.store(first.node.rank.load(Relaxed), Relaxed);
    }

    /// Returns whether a waiter that was offered the lock and does not take it may be set aside.
    pub(super) fn may_set_aside(place: Place<P>, offer: &Offer) -> bool {
        place.id.index() < u32::from(PASS) && !matches!(offer, Offer::Stays)
    }

    /// Puts a waiter, which no longer stands in a queue or cohort, at the end of the list. If the
    /// waiter has left, gives its node back instead.
    pub(super) fn set_aside(first: Place<P>, place: Place<P>, offer: &Offer) {
        if let Offer::Left = offer {
            place.give();
            return;
        }
        let name = place.id.index() as u16;
        place.node.next.store(0, Relaxed);
        match at::<P>(first.node.rank.load(Relaxed)) {
            Some(last) => last.node.next.store(place.id.bits(), Relaxed),
            None => first.node.cpu.store(name, Relaxed),
        }
        first.node.rank.store(name, Relaxed);
    }

    /// Takes the waiter behind `first`, which was offered the lock, out of the queue and sets it
    /// aside. Returns `false`, and does nothing, if it is the last, or must stay.
    pub(super) fn set_next_aside(&self, first: Place<P>, next: Place<P>, offer: &Offer) -> bool {
        // Acquire: the node linked to `first` must be whole for every thread that follows the link.
        let behind = next.node.next.load(Acquire);
        if behind == 0 || !Self::may_set_aside(next, offer) {
            return false;
        }
        // Relaxed: read by us, or by a head that has it from us.
        match self.behind_in_cohort(next) {
            None => first.node.next.store(behind, Relaxed),
            Some(follower) => {
                // The follower leads the cohort from now on.
                follower.node.next.store(behind, Relaxed);
                status::queue(follower.node);
                first.node.next.store(follower.id.bits(), Relaxed);
            }
        }
        Self::set_aside(first, next, offer);
        true
    }

    /// Turns the first of the list out (ASIDE-2); returns the waiter to wake after the lock was
    /// handed over.
    #[must_use]
    pub(super) fn turn_out(first: Place<P>) -> Option<WaiterRef> {
        let place = at::<P>(first.node.cpu.load(Relaxed))?;
        match place.next() {
            Some(next) => first.node.cpu.store(next.id.index() as u16, Relaxed),
            None => Self::begin_list(first),
        }
        // Before the waiter can learn of it: from then on the node is its own.
        let target = arena::<P>().reference(place.id.index());
        let was = status::turn_out(place.node);
        if was.abandoned() {
            place.give();
            return None;
        }
        target.filter(|_| was.parked())
    }

    /// ASIDE-3: puts the list into the queue, ahead of all other waiters.
    pub(super) fn call_back(&self, first: Place<P>) {
        let ends = [&first.node.cpu, &first.node.rank].map(|name| at::<P>(name.load(Relaxed)));
        let [Some(begin), Some(end)] = ends else { return };
        Self::begin_list(first);
        if let Some(next) = first.next() {
            // Relaxed, both: read by us, or by a head that has it from us.
            end.node.next.store(next.id.bits(), Relaxed);
            first.node.next.store(begin.id.bits(), Relaxed);
            return;
        }
        let previous = self.tail.join(end.id);
        // `first` is in the queue, so no waiter before them has left it as its head.
        let _ = begin.link(previous);
    }
}
