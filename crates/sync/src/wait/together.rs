//! Waiters that are let go together: each puts itself at the front of a list, by an exchange of the
//! primitive's own word, and one thread takes the whole list.
//!
//! ```text
//!            puts itself in front            let go, by a spinner's list or its waker
//!   (node) ─────────────────────► WAITING ──────────────────────────────────────► GONE
//!                                    │                                              ▲
//!                                    └──► PARKED ─── let go, and woken ─────────────┘
//! ```
//!
//! A thread that lets a list go wakes some sleepers itself and leaves the others to them: of `n`
//! sleepers it wakes the square root, and each of these wakes the next few before it goes on. If
//! one thread woke all, the last sleeper would wait for `n` system calls.
//!
//! - TOGETHER-1: a node is on one list at most, and its waiter returns only after it has been let
//!   go.
//! - TOGETHER-2: after the exchange that takes the list, only nodes are touched, and no node after
//!   it was let go. So the primitive's memory may be gone as soon as the first waiter has returned.
//! - TOGETHER-3: a waiter that was woken and has others behind it wakes them before it returns.
//! - TOGETHER-4: a node whose `queue` names a node is one of [several](super::Several) of its
//!   waiter, which parks on the named node, the same or another: the thread that lets it go reads
//!   the name first, and then wakes that node.
//! - TOGETHER-5: waking others is never left to a node that is one of several, and waking such a
//!   node is never left to others. Its waiter may be at another list, where it waits to be let go
//!   by a thread that in turn waits to be let go here.
//!
//! A waiter whose thread is stopped between being woken and waking others delays them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{
    Atomic, Budget, Deadline, Hint, Parked, Platform, Waiter, WaiterId, WaiterRef,
};

use super::spin;
use crate::arena;
use crate::lock::{Form, Standard};
use crate::nap;

/// Constants of primitives whose waiters are let go together, in addition to those of [`Form`].
pub trait CrowdForm: Form {
    /// The largest number of sleepers that the thread which lets them go wakes by itself.
    const ALONE: u32 = 8;

    /// Returns how long a waiter for an event spins, where CPUs suffice, before it sleeps, in
    /// nanoseconds: the cost of a sleep, so that it never spends more than twice the minimum
    /// (Karlin et al., SOSP 1991).
    fn event_spin_ns<P: Platform>() -> u32 {
        P::sleep_cost_ns()
    }
}

impl CrowdForm for Standard {}

/// A form in which no waiter spins: a thread that must wait sleeps at once. Costs a wake for each
/// wait, and no CPU time.
pub struct Unpolled;

impl Form for Unpolled {
    const SPIN: Budget = Budget::NONE;
    const QUEUE_SPIN: Budget = Budget::NONE;
    const HEAD_SPIN: Budget = Budget::NONE;
    const LINGER: Budget = Budget::NONE;
}

impl CrowdForm for Unpolled {
    fn event_spin_ns<P: Platform>() -> u32 {
        0
    }
}

/// The waiter waits to be let go. A status of 0 means that the node was wiped, in the child of a
/// fork.
const WAITING: u32 = 1;
const PARKED: u32 = 2;
/// The waiter has been let go, and was told a word by the primitive: `GONE + word`.
const GONE: u32 = 4;

/// How long a waiter whose leave was refused sleeps before it asks again, in nanoseconds.
const ON_THE_WAY_NS: u64 = 200_000;

/// The caller's node, for one wait.
pub(super) struct Member<P: Platform> {
    id: WaiterId,
    pub(super) node: &'static Waiter<P>,
    generation: u32,
}

/// How a wait ended.
#[must_use]
pub(super) enum Told<W> {
    /// The waiter was let go with this word.
    Gone(W),
    /// The node is gone: the process has forked meanwhile, and the waiter must begin again.
    Lost,
}

impl<P: Platform> Member<P> {
    /// Takes a node for a wait of the caller. Returns `None` if no node is free.
    pub(super) fn take() -> Option<Self> {
        let id = arena::<P>().take()?;
        let node = arena::<P>().resolve(id)?;
        // Relaxed, all: published by the exchange that puts the node on a list.
        let generation = node.generation.load(Relaxed);
        // An even generation: a fork in a signal handler has just wiped the node.
        if generation.is_multiple_of(2) {
            return None;
        }
        node.status.store(WAITING, Relaxed);
        node.batch.store(0, Relaxed);
        node.queue.store(0, Relaxed);
        Some(Self { id, node, generation })
    }

    /// Takes a node for one of several waits of the caller, which parks on `self`. The node is
    /// marked asleep from the start, for the threads that let it go.
    pub(super) fn take_beside(&self) -> Option<Self> {
        let beside = Self::take()?;
        beside.node.status.store(PARKED, Relaxed);
        // TOGETHER-4. Relaxed, both: as in `take`.
        beside.node.queue.store(self.reference().bits(), Relaxed);
        Some(beside)
    }

    /// Lends this node to the first of several waits, marked asleep as the nodes of the other waits
    /// are.
    pub(super) fn lend(&self) -> Self {
        // Relaxed, both: as in `take`.
        self.node.status.store(PARKED, Relaxed);
        // A node that names itself is lent.
        self.node.queue.store(self.reference().bits(), Relaxed);
        Self { id: self.id, ..*self }
    }

    /// Returns whether the node is that of several waits, whose owner gives it back.
    fn is_lent(&self) -> bool {
        // Relaxed: written by the caller.
        self.node.queue.load(Relaxed) == self.reference().bits()
    }

    /// Gives back a node that may have been lent, and that no wait has any more.
    pub(super) fn give_lead(self) {
        // Relaxed: as in `take`.
        self.node.queue.store(0, Relaxed);
        self.give();
    }

    /// Returns the reference by which to wake the node's waiter.
    pub(super) fn reference(&self) -> WaiterRef {
        WaiterRef { index: self.id.index(), generation: self.generation }
    }

    /// Returns the node's name.
    pub(super) fn id(&self) -> WaiterId {
        self.id
    }

    /// Returns the node's index, which is the name of a list that begins with it.
    pub(super) fn index(&self) -> u32 {
        self.id.index()
    }

    /// Puts the node before the list `first`; returns the name of the new list. The exchange that
    /// publishes it must be a release.
    pub(super) fn stand_before(&self, first: u32) -> u32 {
        // Relaxed: published by the caller's exchange.
        self.node.next.store(first, Relaxed);
        self.index()
    }

    /// Backs off from the word, for which `others` threads may contend, after the caller's exchange
    /// has failed for the `failures`th time: for a random number of turns, up to the number of
    /// others, and up to twice as many each time. If all came at once and retried at once, each
    /// would delay all others.
    pub(super) fn stand_back<F: Form>(&self, failures: u32, others: u64) {
        const MOST: u64 = 256;
        let turn_ns = u64::from(F::SPIN.ns / 8);
        let longest_ns = (others.min(MOST) << failures.min(4)) * turn_ns;
        let ns = (u64::from(P::random()) * longest_ns) >> 32;
        // No thread changes the word: this is only a delay. Relaxed: it orders nothing.
        let budget = Budget::ns(ns as u32);
        let _ = self.node.status.spin_while(Relaxed, budget, |status| status == WAITING);
    }

    /// Gives back the node, which is on no list.
    pub(super) fn give(self) {
        if !self.is_lent() && !self.is_lost() {
            arena::<P>().give(self.id);
        }
    }

    /// Returns whether the wait is over; if so, what was done before the waiter was let go happens
    /// before the return.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with `let_go`.
        !Self::waits(self.node.status.load(Acquire)) || self.is_lost()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.node.generation.load(Relaxed) != self.generation
    }

    /// Waits, spinning and then asleep, until the caller is let go; then lets go the waiters that
    /// were left to it.
    pub(super) fn wait<F: CrowdForm>(self) -> Told<u32> {
        let _ = self.outlast::<F>(None);
        self.end()
    }

    /// Ends a wait that is over. Lets go the waiters that were left to the caller.
    pub(super) fn end(self) -> Told<u32> {
        // Relaxed: the caller has seen that the wait is over, and so has acquired it.
        let status = self.node.status.load(Relaxed);
        if status < GONE || self.is_lost() {
            return Told::Lost;
        }
        // Relaxed, here and below: written before we were let go.
        let left = self.node.batch.load(Relaxed);
        wake_in_turn::<P>(self.node.next.load(Relaxed), left, status);
        self.give();
        Told::Gone(status - GONE)
    }

    /// Waits, spinning and then asleep, until the wait is over or `deadline` has passed; returns
    /// whether it is over. If not, the node is still on its list, as far as the caller can see.
    pub(super) fn outlast<F: CrowdForm>(&self, deadline: Option<Deadline>) -> bool {
        let status = &self.node.status;
        // Acquire, here and below: what was done before we were let go; pairs with `let_go`.
        if !P::crowded() {
            P::hint(Hint::SpinBegin);
            let spun = status.spin_while(Acquire, F::QUEUE_SPIN, Self::waits);
            P::hint(Hint::SpinEnd);
            if spun.is_ok() {
                return true;
            }
        }
        // Relaxed where it succeeds: a thread that finds us asleep reads nothing that we have
        // written.
        if let Err(now) = status.compare_exchange(WAITING, PARKED, Relaxed, Acquire)
            && !Self::waits(now)
        {
            return true;
        }
        loop {
            // However the sleep ended, the status says whether the wait is over.
            let parked = P::park(self.bed(), deadline);
            let now = status.load(Acquire);
            if now != PARKED || self.is_lost() {
                return true;
            }
            if parked == Parked::TimedOut {
                return false;
            }
        }
    }

    /// Returns the node to park on: this node, or the node that it names (TOGETHER-4).
    fn bed(&self) -> &'static Waiter<P> {
        // Relaxed: written by the caller.
        let named = WaiterRef::from_bits(self.node.queue.load(Relaxed));
        named.and_then(|bed| arena::<P>().resolve_index(bed.index)).unwrap_or(self.node)
    }

    /// Does what [`outlast`](Self::outlast) does, but when the deadline has passed it asks `leave`
    /// to remove the caller from its list. If `leave` refuses, because the thread that lets the
    /// caller go is on the way, it waits on.
    pub(super) fn outlast_unless<F: CrowdForm>(
        &self,
        deadline: Option<Deadline>,
        leave: impl Fn() -> bool,
    ) -> bool {
        let mut until = deadline;
        while !self.outlast::<F>(until) {
            if leave() {
                return false;
            }
            until = Some(nap::after::<P>(ON_THE_WAY_NS));
        }
        true
    }

    /// Ends a wait, over or not: asks `leave` to remove the caller from its list, as in
    /// [`outlast_unless`](Self::outlast_unless). Returns whether the caller was let go before that.
    pub(super) fn withdraw<F: CrowdForm>(self, leave: impl Fn(&Self) -> bool) -> bool {
        if !self.is_over() {
            let soon = || Some(nap::after::<P>(ON_THE_WAY_NS));
            if leave(&self) || !self.outlast_unless::<F>(soon(), || leave(&self)) {
                self.give();
                return false;
            }
        }
        matches!(self.end(), Told::Gone(_))
    }

    /// Spins for as long as it is worthwhile for a waiter that may be let go soon; afterwards the
    /// waiter must [outlast](Self::outlast) its wait.
    pub(super) fn spin<F: CrowdForm>(&self, deadline: Option<Deadline>) {
        // The result does not matter.
        let _ = spin::spin::<P, F, _>(&self.node.status, deadline, Self::waits);
    }

    pub(super) fn waits(status: u32) -> bool {
        matches!(status, WAITING | PARKED)
    }
}

/// How a wait on a list ended.
#[derive(PartialEq)]
#[must_use]
pub(super) enum Listed {
    /// The caller had nothing to wait for.
    Refused,
    /// The waiter was let go.
    LetGo,
    /// The waiter has left the list, because the deadline had passed.
    GaveUp,
}

/// Waits on a list: `enlist` puts the caller there, unless it has nothing to wait for, and `leave`
/// removes it when the deadline has passed, as in [`Member::outlast_unless`]. Returns `None` if no
/// node was free.
pub(super) fn wait_listed<P: Platform, F: CrowdForm>(
    deadline: Option<Deadline>,
    enlist: impl Fn(&Member<P>) -> bool,
    leave: impl Fn(&Member<P>) -> bool,
) -> Option<Listed> {
    loop {
        let me = Member::<P>::take()?;
        if !enlist(&me) {
            me.give();
            return Some(Listed::Refused);
        }
        if !me.outlast_unless::<F>(deadline, || leave(&me)) {
            me.give();
            return Some(Listed::GaveUp);
        }
        if let Told::Gone(_) = me.end() {
            return Some(Listed::LetGo);
        }
        // This is the child of a fork: no thread here knows that the caller waits.
    }
}

/// Lets go all waiters of the list `first`, and tells them `word`. The caller has taken the list by
/// an acquiring exchange, and does not touch the primitive afterwards (TOGETHER-2).
pub(super) fn let_go<P: Platform, F: CrowdForm>(first: u32, word: u32) {
    let gone = GONE + word;
    let Sleepers { alone, count, of_several } = let_spinners_go::<P>(first, gone);
    wake_by_each_other::<P, F>(alone, count, gone);
    // TOGETHER-5.
    wake_in_turn::<P>(of_several, u32::MAX, gone);
}

/// Lets go a list of `count` sleepers, which wake each other if they are many.
fn wake_by_each_other<P: Platform, F: CrowdForm>(first: u32, count: u32, gone: u32) {
    if count <= F::ALONE {
        return wake_in_turn::<P>(first, count, gone);
    }
    let share = count.isqrt().max(2);
    let mut at = first;
    while let Some(node) = node::<P>(at) {
        // TOGETHER-3. Relaxed: published when the first of them is let go.
        node.batch.store(share - 1, Relaxed);
        let mine = at;
        for _ in 0..share {
            at = node_behind::<P>(at);
        }
        wake_in_turn::<P>(mine, 1, gone);
    }
}

/// The sleeping waiters of a list, as two lists.
struct Sleepers {
    /// The waiters that wait only for this object; `count` is their number.
    alone: u32,
    count: u32,
    /// The waiters that wait for several objects.
    of_several: u32,
}

/// Lets go the waiters that do not sleep; returns the others.
fn let_spinners_go<P: Platform>(first: u32, gone: u32) -> Sleepers {
    let mut sleepers = Sleepers { alone: 0, count: 0, of_several: 0 };
    let mut at = first;
    while let Some(node) = node::<P>(at) {
        // Relaxed, both: acquired with the list.
        let (behind, bed) = (node.next.load(Relaxed), node.queue.load(Relaxed));
        // Release: pairs with the acquires in `outlast`; and our look at the node comes first.
        if node.status.compare_exchange(WAITING, gone, Release, Relaxed).is_err() {
            // The waiter sleeps, and its node is ours until it is let go.
            let before = if bed == 0 { &mut sleepers.alone } else { &mut sleepers.of_several };
            node.next.store(*before, Relaxed);
            *before = at;
            sleepers.count += u32::from(bed == 0);
        }
        at = behind;
    }
    sleepers
}

/// Lets go and wakes the first `count` sleepers of a list.
fn wake_in_turn<P: Platform>(first: u32, count: u32, gone: u32) {
    let mut at = first;
    for _ in 0..count {
        let Some(node) = node::<P>(at) else { return };
        // Both before it is let go: afterwards the node may belong to another wait.
        let sleeper = sleeper(at, node);
        at = node.next.load(Relaxed);
        // Release: as in `let_spinners_go`.
        node.status.store(gone, Release);
        if let Some(sleeper) = sleeper {
            P::unpark(sleeper);
        }
    }
}

/// Returns the waiter to wake for a node of a list.
fn sleeper<P: Platform>(name: u32, node: &Waiter<P>) -> Option<WaiterRef> {
    // TOGETHER-4. Relaxed: acquired with the list.
    let bed = WaiterRef::from_bits(node.queue.load(Relaxed));
    bed.or_else(|| arena::<P>().reference(index(name)?))
}

/// Returns the node with which the list of this name begins; `None` for an empty list, and for
/// names that another process has left.
fn node<P: Platform>(name: u32) -> Option<&'static Waiter<P>> {
    arena::<P>().resolve_index(index(name)?)
}

/// Returns the index in a name, which has an epoch or, in a narrow word, none.
fn index(name: u32) -> Option<u32> {
    WaiterId::from_bits(name).map(WaiterId::index)
}

fn node_behind<P: Platform>(name: u32) -> u32 {
    node::<P>(name).map_or(0, |node| node.next.load(Relaxed))
}
