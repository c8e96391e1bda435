//! Waiters of real-time priority: the highest of them is served first, before all other waiters.
//!
//! Source: POSIX, "Thread Scheduling" and `pthread_mutex_unlock`: with `SCHED_FIFO`, `SCHED_RR` and
//! `SCHED_SPORADIC` the waiter of the highest priority has the lock next; a readers-writer lock
//! prefers writers among waiters of one priority (`pthread_rwlock_rdlock`). The kernel's futex
//! queue does the same.
//!
//! ```text
//!   as the head:    HEAD ──► a ──► urgent ──► b      urgent ──► (was HEAD) ──► a ──► b
//!                     before it takes the lock or sleeps: steps down, and goes behind `urgent`
//!   as the owner:   (me) ──► a ──► urgent ──► b      (me) ──► urgent ──► a ──► b
//!                     before it makes the next waiter the head
//! ```
//!
//! - URGENT-1: a head that finds a waiter more urgent than itself behind it makes that waiter the
//!   head, and stands right behind it. The head looks before it takes the lock, and before it
//!   sleeps.
//! - URGENT-2: a waiter that leaves the head of the queue first puts the most urgent waiter right
//!   behind itself. Among equals, the first to come goes first.
//! - URGENT-3: nodes are moved by the waiter that has the shuffling role, or by a head if there was
//!   no role before it (INV-1). A head whose role has gone to a waiter that sleeps takes it back;
//!   if that waiter is awake, the head moves no node.
//! - URGENT-4: a head that sleeps is at least as urgent as any waiter in the queue, or has a wake
//!   coming: an arriving waiter that is more urgent wakes it, so that it steps down before the lock
//!   is free. The release then wakes the right waiter.
//! - URGENT-5: while there are urgent waiters, a reader that is woken behind a head that was called
//!   does not come in beside it, as it may elsewhere (RW-6, WATCH-1): the head may just be about to
//!   step down for another waiter, and have no CPU for that. If the head does not run, the backstop
//!   takes effect (WATCH-2).
//!
//! All of this affects only order: if a head fails to see or to move a waiter, that waiter is not
//! lost. This happens when an arriving waiter has lost its CPU before it linked itself: one between
//! the two, or one right behind the waiter to be moved.
//!
//! The cost where no thread has a real-time priority: a load of a counter that no thread writes,
//! each time that a head is about to take the lock or to sleep; and one query to the kernel for
//! each wait that sleeps ([`Urgency::urgency`](antiphon_platform::Urgency::urgency)). Once an
//! urgent thread has waited, all threads query it when they join.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Platform, Waiter};

use super::fence::Fence;
use super::form::Form;
use super::queue::{Place, TailId};
use super::status;
use super::words::Words;
use crate::arena;
use crate::policy::Policy;

/// How long to wait for an arriving waiter that has not linked itself behind the node to be moved.
const LINK_NS: u32 = 1_000;

/// A waiter's own urgency, as far as the waiter knows it; a waiter with an urgency above 0 is
/// counted.
pub(super) struct Urgency<P: Platform> {
    counter: &'static P::U32,
    urgency: u8,
    asked: bool,
}

impl<P: Platform> Urgency<P> {
    /// For a waiter that is about to join the queue. It asks at once if there have been urgent
    /// waiters.
    pub(super) fn join(tail: &TailId<P>, node: &Waiter<P>) -> Self {
        let mut this = Self { counter: counter(tail), urgency: 0, asked: false };
        // Relaxed: decides about order only, as do all accesses in this file except those to links.
        if arena::<P>().saw_urgent.load(Relaxed) != 0 {
            this.ask(node);
        }
        this
    }

    /// For a waiter that was moved, and so has no urgency.
    pub(super) fn moved(tail: &TailId<P>) -> Self {
        Self { counter: counter(tail), urgency: 0, asked: true }
    }

    pub(super) fn get(&self) -> u8 {
        self.urgency
    }

    /// Asks the platform on the first call, and notes the answer in the node; returns whether this
    /// call has found the waiter to be urgent.
    #[inline]
    pub(super) fn ask(&mut self, node: &Waiter<P>) -> bool {
        if self.asked {
            return false;
        }
        self.asked = true;
        self.urgency = P::urgency();
        if self.urgency > 0 {
            self.tell(node);
        }
        self.urgency > 0
    }

    #[cold]
    fn tell(&self, node: &Waiter<P>) {
        status::set_urgency(node, self.urgency);
        note_urgent::<P>();
        self.counter.fetch_add(1, Relaxed);
    }

    /// Ends the wait. Must not be called if the process has forked during the wait: the child's
    /// counters are new.
    pub(super) fn end(self) {
        if self.urgency > 0 {
            self.counter.fetch_sub(1, Relaxed);
        }
    }

    /// Called by a head that has named itself, before it looks for more urgent waiters and then
    /// sleeps: an arriving waiter that the head does not see, sees the head's name and wakes it. If
    /// no waiter was ever urgent this costs one load; the very first urgent waiter may come just
    /// then, and waits for the release.
    pub(super) fn precede_sleep(&self) {
        if arena::<P>().saw_urgent.load(Relaxed) != 0 {
            // SeqCst: pairs with the fence in `rouse_head`.
            P::fence(SeqCst);
        }
    }

    /// Returns whether there may be other urgent waiters.
    #[inline]
    pub(super) fn has_company(&self) -> bool {
        self.counter.load(Relaxed) != u32::from(self.urgency > 0)
    }

    /// Returns the largest possible number of other urgent waiters.
    fn company(&self) -> u32 {
        self.counter.load(Relaxed).wrapping_sub(u32::from(self.urgency > 0))
    }
}

/// Returns whether the caller is urgent; asks the kernel. For a waiter that would sleep outside the
/// queue.
pub(super) fn caller_is_urgent<P: Platform>() -> bool {
    let urgent = P::urgency() > 0;
    if urgent {
        note_urgent::<P>();
    }
    urgent
}

/// Notes that there has been an urgent waiter: from now on all waiters ask when they join.
fn note_urgent<P: Platform>() {
    // Relaxed, both: a hint whether to ask.
    if arena::<P>().saw_urgent.load(Relaxed) == 0 {
        arena::<P>().saw_urgent.store(1, Relaxed);
    }
}

fn counter<P: Platform>(tail: &TailId<P>) -> &'static P::U32 {
    arena::<P>().urgent(core::ptr::from_ref(tail).addr())
}

/// The most urgent waiter behind the head, and the place before it.
struct Found<P: Platform> {
    before: Place<P>,
    place: Place<P>,
    rank: u32,
}

/// Finds the most urgent waiter behind `me` by `rank`, which is 0 for a waiter that is not urgent;
/// of equals, the first.
fn find<P: Platform>(
    me: Place<P>,
    urgency: &Urgency<P>,
    rank: impl Fn(&Waiter<P>) -> u32,
) -> Option<Found<P>> {
    let mut found: Option<Found<P>> = None;
    let mut left = urgency.company();
    let mut before = me;
    while left > 0 {
        let Some(place) = before.next() else { break };
        let rank = rank(place.node);
        left -= u32::from(rank > 0);
        if rank > found.as_ref().map_or(0, |found| found.rank) {
            found = Some(Found { before, place, rank });
        }
        before = place;
    }
    found
}

impl<P: Platform> Found<P> {
    /// Takes the place out of the queue; `false` if an arriving waiter behind it has not linked
    /// itself.
    fn take_out(&self, tail: &TailId<P>) -> bool {
        let Self { before, place, .. } = *self;
        // Acquire: the node linked to `before` must be whole for every thread that follows the
        // link.
        let mut behind = place.node.next.load(Acquire);
        if behind == 0 {
            // It is the last, so `before` will be the last. The next arriving waiter links itself
            // there, so the old link must be cleared first. Relaxed: the exchange of the tail
            // publishes it.
            before.node.next.store(0, Relaxed);
            if tail.retreat(place.id, before.id) {
                return true;
            }
            before.node.next.store(place.id.bits(), Relaxed);
            let budget = Budget::ns(LINK_NS);
            match place.node.next.spin_while(Acquire, budget, |behind| behind == 0) {
                Ok(linked) => behind = linked,
                Err(_) => return false,
            }
        }
        // Relaxed: as in `shuffle`: a thread that follows these links has the role or is the head.
        before.node.next.store(behind, Relaxed);
        true
    }

    /// Clears what shuffling has noted in a node that is moved: its role, if any, is passed on
    /// explicitly.
    fn renew(&self) {
        self.place.node.batch.store(0, Relaxed);
        self.place.node.resume.store(0, Relaxed);
    }
}

/// Puts the most urgent waiter right behind `me`, which has the right to move others.
fn put_second<P: Platform>(
    me: Place<P>,
    tail: &TailId<P>,
    urgency: &Urgency<P>,
    rank: impl Fn(&Waiter<P>) -> u32,
) {
    let Some(found) = find(me, urgency, rank) else { return };
    if found.before == me || !found.take_out(tail) {
        return;
    }
    found.renew();
    // Waiters that were sorted before may be in front now.
    me.node.resume.store(0, Relaxed);
    // Relaxed: as in `take_out`.
    found.place.node.next.store(me.node.next.load(Relaxed), Relaxed);
    me.node.next.store(found.place.id.bits(), Relaxed);
}

/// Takes the most urgent waiter out of the queue, if it is more urgent than `me`, and puts it
/// before `me`, which has the right to move others. The waiter is not the head yet.
fn put_first<P: Platform>(
    me: Place<P>,
    tail: &TailId<P>,
    urgency: &Urgency<P>,
    rank: impl Fn(&Waiter<P>) -> u32,
) -> Option<Place<P>> {
    let found = find(me, urgency, &rank)?;
    if found.rank <= rank(me.node) || !found.take_out(tail) {
        return None;
    }
    found.renew();
    me.node.batch.store(0, Relaxed);
    me.node.resume.store(0, Relaxed);
    found.place.node.next.store(me.id.bits(), Relaxed);
    Some(found.place)
}

/// URGENT-3: returns whether the head may move others; takes the role back from a waiter that
/// sleeps, or has left with it.
fn may_move<P: Platform>(me: Place<P>, role: &mut bool) -> bool {
    if *role || me.node.batch.load(Relaxed) == 0 {
        return true;
    }
    // The holder of the role is the last of the group.
    let of_group = |place: &Place<P>| place.node.batch.load(Relaxed) != 0;
    let mut last = me;
    while let Some(next) = last.next().filter(of_group) {
        last = next;
    }
    if last == me || !status::recall_role(last.node) {
        return false;
    }
    *role = true;
    // The group is dissolved: none of its waiters continues gathering where the last shuffler
    // stopped.
    last.node.resume.store(0, Relaxed);
    let mut at = me;
    while at != last {
        let Some(next) = at.next() else { break };
        at = next;
        at.node.batch.store(0, Relaxed);
    }
    true
}

/// What a head's search for more urgent waiters led to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The caller is the head as before.
    Stays,
    /// Another waiter is the head.
    Down,
    /// The caller is the head again, because that waiter has left. The caller is no longer named:
    /// before it sleeps it must name itself.
    Unnamed,
}

impl Step {
    /// Returns whether another waiter is the head. A head that is no longer named needs a new
    /// `fence` when it names itself again (FENCE-3).
    pub(super) fn is_down(self, fence: &mut Fence) -> bool {
        if self == Self::Unnamed {
            *fence = Fence::NEW;
        }
        self == Self::Down
    }
}

/// URGENT-1: makes a more urgent waiter the head in the place of the caller, which is the head.
#[inline]
pub(super) fn step_down<P: Platform, Q: Policy, F: Form, C: Words<P, Q, F>>(
    lock: &C,
    me: Place<P>,
    role: &mut bool,
    urgency: &Urgency<P>,
) -> Step {
    if C::URGENT && urgency.has_company() {
        look_behind(lock, me, role, urgency)
    } else {
        Step::Stays
    }
}

/// Does what [`step_down`] does, where the lock was seen free: all waiters count that stood in the
/// queue when it was released.
#[inline]
pub(super) fn step_down_at_last<P: Platform, Q: Policy, F: Form, C: Words<P, Q, F>>(
    lock: &C,
    me: Place<P>,
    role: &mut bool,
    urgency: &Urgency<P>,
) -> Step {
    if C::URGENT {
        // Acquire: what happened before the unlock; pairs with its release.
        P::fence(Acquire);
    }
    step_down(lock, me, role, urgency)
}

#[cold]
#[inline(never)]
fn look_behind<P: Platform, Q: Policy, F: Form, C: Words<P, Q, F>>(
    lock: &C,
    me: Place<P>,
    role: &mut bool,
    urgency: &Urgency<P>,
) -> Step {
    if me.is_lost() || !may_move(me, role) {
        return Step::Stays;
    }
    let Some(first) = put_first(me, lock.tail(), urgency, C::urgency_of) else {
        return Step::Stays;
    };
    lock.unname();
    status::step_down(me.node);
    if *role {
        status::give_role(first.node);
    }
    let target = arena::<P>().reference(first.id.index());
    let was = status::grant(first.node);
    if was.abandoned() {
        // The waiter has left meanwhile: the caller, which is behind it, is the head again.
        lock.disband(first);
        first.give();
        status::begin_as_head(me.node);
        return Step::Unnamed;
    }
    // If the waiter is awake and must wait, it names itself: other threads do not know when it
    // sleeps.
    if was.parked()
        && let Some(target) = target
    {
        P::unpark(target);
    }
    *role = false;
    Step::Down
}

/// URGENT-2: called by a waiter that leaves the head of the queue; returns whether it has the role.
pub(super) fn raise<P: Platform, Q: Policy, F: Form, C: Words<P, Q, F>>(
    lock: &C,
    me: Place<P>,
    mut role: bool,
    urgency: &Urgency<P>,
) -> bool {
    if !me.is_lost() && may_move(me, &mut role) {
        put_second(me, lock.tail(), urgency, C::urgency_of);
    }
    role
}

/// URGENT-4: wakes a head that sleeps and is less urgent than the caller, which has joined the
/// queue: the head then steps down.
#[cold]
pub(super) fn rouse_head<P: Platform, Q: Policy, F: Form, C: Words<P, Q, F>>(
    lock: &C,
    me: Place<P>,
) {
    // SeqCst: pairs with the fence of a head which has named itself (`Urgency::precede_sleep`): we
    // see the name, or the head sees us counted and in the queue.
    P::fence(SeqCst);
    let index = u32::from(lock.named());
    let Some(head) = arena::<P>().resolve_index(index) else { return };
    if C::urgency_of(head) < C::urgency_of(me.node)
        && let Some(head) = arena::<P>().reference(index)
    {
        P::unpark(head);
    }
}
