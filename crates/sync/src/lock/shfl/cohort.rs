//! Cohorts: waiters of one socket that share one place in a lock's queue.
//!
//! Sources: `000_…`, "Sort waiters on the fly using socket ID", for the aim; Dice, Marathe and
//! Shavit, "Lock Cohorting" (PPoPP 2012), and Chabbi, Fagan and Mellor-Crummey, "High Performance
//! Locks for Multi-level NUMA Systems" (PPoPP 2015), for a queue in each socket. Their queues take
//! hundreds of bytes in the lock. Here a queue takes a word of the arena, chosen by lock and
//! socket, while a thread waits. A lock whose word is in use by another lock has no cohort there.
//!
//! Shuffling alone is not enough: a hand-over within a socket takes less time than a shuffler needs
//! for one waiter, which costs two transfers of cache lines. A shuffler then never gets ahead of
//! the queue. An arriving waiter that joins in the right place makes no other waiter move.
//!
//! ```text
//!   word (lock, socket) ───────────────────────────┐
//!                                                  ▼
//!   queue:   OWNER's first ──wants──► waiter ──► waiter        (one socket)
//!               │ next
//!               ▼
//!            waiter ──wants──► waiter                          (another socket)
//! ```
//!
//! The first waiter of a cohort stands in the queue as any waiter does. The others stand behind it,
//! linked by `wants`. Each owner hands the lock to the next waiter of the cohort, at most
//! [`Cohorts::COHORT`] times in all. Each inherits the place of the first, whose name is in
//! `queue`. The first waiter's node stays in the queue until the cohort's turn is over. The rest of
//! the cohort then goes to the end of the queue.
//!
//! | `wants` | meaning |
//! |---|---|
//! | 0 | in no cohort |
//! | `LAST` | no waiter is linked behind it; its word names it, or a waiter that will link itself |
//! | a name | the waiter behind it |
//! | `CLOSED` | it has left ahead of an arriving waiter that has not linked itself |
//! | `LEFT` | … and its node is the arriving waiter's to give back |
//! | `SEEN` | … and the arriving waiter has seen that, first |
//!
//! - COHORT-1: a word names the last of one cohort, and the lock that this cohort waits for; no two
//!   cohorts share a word at a time. Two sockets of one lock that have the same word are one
//!   cohort.
//! - COHORT-2: a node that an arriving waiter may still link itself to is not given back: its owner
//!   has taken it out of the word, has seen the link, or leaves it to the later of the two
//!   (`CLOSED`, then `LEFT` or `SEEN`).
//! - COHORT-3: the lock is handed on within a cohort at most [`Cohorts::COHORT`] times in a row;
//!   then the next in the queue has its turn. So no waiter is overtaken for ever.
//! - COHORT-4: waiters are taken out of a cohort, and put into the queue, by the first of the
//!   queue: the owner that has kept its place there, or the head.
//! - COHORT-5: a waiter that sleeps in a cohort looks up after the backstop, whatever the head
//!   does: it takes a lock that is free, or else leaves and stands in the queue. A waiter that
//!   spins there as long as a time slice sleeps. So a word that names a node which no waiter will
//!   ever leave, of a lock whose memory was used anew while it was held, costs nothing but time.
//!
//! Waiters of the mutex come into a cohort only while they see it handed over. If the owner stops
//! handing over, the first of the cohort gets the lock in its turn, and puts the next waiter of the
//! cohort into the queue as it leaves. A waiter that sleeps or has given up when its turn comes is
//! set aside (`aside.rs`), and the lock is handed to the waiter behind it. A waiter that came into
//! the queue from a cohort is like any other: the queue deals with all that can happen to it.
//!
//! An owner of the spinlock (`spin.rs`) keeps no place to hand on: there the head that has just
//! taken the lock makes the next of its cohort the head, which inherits the place in the queue as
//! an owner of the mutex does. In this file, what is said of owners holds for that head. Its
//! waiters neither sleep nor give up.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform, Waiter};

use super::queue::{Place, Tail};
use super::status::{self, Offer};
use crate::arena;

/// These values are not names, because no epoch is 0.
const LAST: u32 = 1;
const CLOSED: u32 = 2;
const LEFT: u32 = 3;
const SEEN: u32 = 4;

/// How long to wait for an arriving waiter that has not linked itself.
const LINK_NS: u32 = 200;

/// A word's low bits are an index; those above are the lock's [kind](Cohorts::SPINS), and its
/// address of 48 bits without the two lowest.
const INDEX_BITS: u32 = 17;
const ADDRESS_BITS: u32 = 48;

/// The first of the cohort whose place in the queue the node's waiter has inherited. A lower half
/// that is not 0 belongs to the address of a queue: the waiter was moved, and is in no cohort.
fn inherited<P: Platform>(node: &Waiter<P>) -> Option<Place<P>> {
    // Relaxed: written before the lock was handed over.
    let queue = node.queue.load(Relaxed);
    if queue as u32 == 0 { Place::at((queue >> u32::BITS) as u32) } else { None }
}

/// Returns whether the waiter has the queue place of the first of its cohort, and none of its own.
pub(super) fn is_heir<P: Platform>(place: Place<P>) -> bool {
    inherited(place.node).is_some()
}

/// COHORT-2: returns whether an arriving waiter will give back the node. Called by a thread that
/// had closed the node and is about to give it back.
pub(super) fn is_left_to_comer<P: Platform>(node: &Waiter<P>) -> bool {
    // Release: what we did to the node; pairs with the acquire in `link`. Relaxed where it fails:
    // the arriving waiter has only exchanged this word, and has read nothing else that it uses.
    // mutant: seen only where the node is taken anew and its next waiter finds our old words in it:
    // one wait more than the models have.
    node.wants.compare_exchange(CLOSED, LEFT, Release, Relaxed).is_ok()
}

/// Links `me` behind `last`, which it has found in the word; `false` if that waiter has left.
fn link<P: Platform>(me: Place<P>, last: Place<P>) -> bool {
    // Release: publishes our node; pairs with the acquires in `hand_over_in_cohort` and
    // `leave_cohort`.
    if last.node.wants.compare_exchange(LAST, me.id.bits(), Release, Relaxed).is_ok() {
        return true;
    }
    // COHORT-2. Relaxed: we touch nothing of the node afterwards, and have written only this word.
    // Acquire where it fails: what the other thread did to the node, which we give back; pairs with
    // the release in `is_left_to_comer`.
    // mutant: as there.
    if last.node.wants.compare_exchange(CLOSED, SEEN, Relaxed, Acquire).is_err() {
        last.give();
    }
    false
}

/// A lock whose waiters may stand in cohorts.
pub(super) trait Cohorts<P: Platform>: Sized {
    /// How many times in a row the lock may be handed on within a cohort.
    const COHORT: u16;

    /// Whether the lock is a spinlock. Leftovers of another kind of lock at the same address count
    /// as another lock's: a waiter that spins for ever would not find its way out (COHORT-5).
    const SPINS: bool;

    /// Returns the lock's queue.
    fn queue(&self) -> &impl Tail<P>;

    /// Returns whether an arriving waiter may stand in a cohort now: only once another thread
    /// waits, or hands the lock over: the first of a cohort is in the queue behind that thread.
    fn has_cohorts(&self) -> bool;

    /// Offers the lock, or the headship, to a waiter of the caller's cohort.
    fn offer(next: Place<P>) -> Offer;

    /// Returns whether a waiter that was offered the lock and does not take it may be passed by.
    fn may_pass_by(_place: Place<P>, _offer: &Offer) -> bool {
        false
    }

    /// Called by the owner, whose turn began with `first`: deals with a waiter that is passed by.
    /// The waiter no longer stands in a queue or cohort.
    fn pass_by(_first: Place<P>, _place: Place<P>, _offer: &Offer) {}

    /// Returns the arena's word for the caller's cohort, and the value that it has if `me` is the
    /// last of the cohort. `None` for an index or an address that does not fit.
    fn word(&self, me: Place<P>) -> Option<(&'static P::U64, u64)> {
        let address = core::ptr::from_ref(self).addr();
        let index = u64::from(me.id.index());
        let fits = (address as u64) < 1 << ADDRESS_BITS && index < 1 << INDEX_BITS;
        // Relaxed: written before its waiter joined.
        let socket = me.node.socket.load(Relaxed);
        let word = arena::<P>().cohort(address, socket.into());
        let lock = (address as u64) >> 2 << 1 | u64::from(Self::SPINS);
        fits.then_some((word, lock << INDEX_BITS | index))
    }

    /// Puts the caller behind the last waiter of its socket, if the lock has cohorts now and others
    /// of the socket wait. Returns `false` if it must join the queue: it may be the first of a
    /// cohort then.
    fn enter_cohort(&self, me: Place<P>) -> bool {
        if !self.has_cohorts() {
            return false;
        }
        let Some((word, name)) = self.word(me) else { return false };
        // Relaxed, both: published by the exchange.
        me.node.passed.store(0, Relaxed);
        me.node.wants.store(LAST, Relaxed);
        let mut seen = word.load(Relaxed);
        loop {
            if seen != 0 && seen >> INDEX_BITS != name >> INDEX_BITS {
                // COHORT-1: the word is another lock's.
                me.node.wants.store(0, Relaxed);
                return false;
            }
            // Release: publishes our node to the next arriving waiter. Acquire: pairs with that
            // release, because we write to the node that we find.
            match word.compare_exchange(seen, name, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        let index = seen as u32 & ((1 << INDEX_BITS) - 1);
        Place::at_index(index).is_some_and(|last| link(me, last))
    }

    /// Called by the owner: hands the lock to the next of its cohort that is awake, and sets the
    /// sleeping waiters before it aside. Returns `false` if no waiter of the cohort is awake, or
    /// the cohort has had its turn.
    fn hand_over_in_cohort(&self, me: Place<P>) -> bool {
        // Relaxed: written before the lock was handed over.
        let times = me.node.passed.load(Relaxed);
        if times >= Self::COHORT {
            // COHORT-3.
            return false;
        }
        let first = inherited(me.node).unwrap_or(me);
        loop {
            // Acquire: pairs with `link`.
            let behind = me.node.wants.load(Acquire);
            let Some(next) = Place::<P>::at(behind) else { return false };
            // Relaxed, all: the exchange of the status publishes them.
            next.node.queue.store(u64::from(first.id.bits()) << u32::BITS, Relaxed);
            next.node.passed.store(times + 1, Relaxed);
            if first == me {
                // It stays in the queue, and leads no cohort.
                me.node.wants.store(0, Relaxed);
            }
            let offer = Self::offer(next);
            if let Offer::Taken = offer {
                if first != me {
                    me.give();
                }
                return true;
            }
            me.node.wants.store(behind, Relaxed);
            next.node.queue.store(0, Relaxed);
            next.node.passed.store(0, Relaxed);
            if !Self::may_pass_by(next, &offer) {
                return false;
            }
            let after = self.behind_in_cohort(next);
            me.node.wants.store(after.map_or(0, |after| after.id.bits()), Relaxed);
            status::queue(next.node);
            Self::pass_by(first, next, &offer);
        }
    }

    /// Called by the first of the queue: takes `me`, which is about to be set aside, out of its
    /// cohort. Returns the waiter behind it, which belongs to no list for now. Without such a
    /// waiter, does what [`leave_cohort`](Self::leave_cohort) does.
    fn behind_in_cohort(&self, me: Place<P>) -> Option<Place<P>> {
        // Acquire: pairs with `link`.
        let behind = Place::at(me.node.wants.load(Acquire));
        if behind.is_some() {
            me.node.wants.store(0, Relaxed);
        } else {
            self.leave_cohort(me);
        }
        behind
    }

    /// Called by the owner: ends its cohort's turn, and returns the owner's place in the queue: its
    /// own, or the one of the first waiter of its cohort.
    fn first_of(&self, me: Place<P>) -> Place<P> {
        self.leave_cohort(me);
        let Some(first) = inherited(me.node) else { return me };
        me.give();
        first
    }

    /// Called by the first of the queue: takes `me`, which is the caller or a waiter that has left,
    /// out of its cohort. The waiter behind `me`, if any, goes to the end of the queue.
    fn leave_cohort(&self, me: Place<P>) {
        // Acquire, here and below: pairs with `link`.
        let mut behind = me.node.wants.load(Acquire);
        if behind == LAST {
            // Relaxed: an arriving waiter that finds no name touches no node. An exchange, so that
            // it continues the release sequence of the word; a store would not.
            let is_last = self.word(me).is_some_and(|(word, name)| {
                word.compare_exchange(name, 0, Relaxed, Relaxed).is_ok()
            });
            if is_last {
                me.node.wants.store(0, Relaxed);
                return;
            }
            let linked = |wants: u32| wants == LAST;
            behind = match me.node.wants.spin_while(Acquire, Budget::ns(LINK_NS), linked) {
                Ok(behind) => behind,
                Err(_) => {
                    status::close(me.node);
                    // Relaxed: `is_left_to_comer` releases the node. Acquire where it fails: as
                    // above.
                    match me.node.wants.compare_exchange(LAST, CLOSED, Relaxed, Acquire) {
                        Ok(_) => return,
                        Err(behind) => behind,
                    }
                }
            };
        }
        let Some(next) = Place::<P>::at(behind) else { return };
        me.node.wants.store(0, Relaxed);
        status::queue(next.node);
        if next.join(self.queue()).is_none() {
            // The queue's word is a parent process's: no other waiter is in the queue.
            let target = arena::<P>().reference(next.id.index());
            if status::grant(next.node).parked()
                && let Some(target) = target
            {
                P::unpark(target);
            }
        }
    }
}
