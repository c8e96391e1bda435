//! Waiters that are let go together: a list that each puts itself in front of, by an exchange of
//! the primitive's own word, and that one thread takes whole.
//!
//! ```text
//!            puts itself in front            let go, by a spinner's list or its waker
//!   (node) ─────────────────────► WAITING ──────────────────────────────────────► GONE
//!                                    │                                              ▲
//!                                    └──► PARKED ─── let go, and woken ─────────────┘
//! ```
//!
//! A thread that lets a list go wakes some sleepers itself and leaves the others to those: of `n`
//! sleepers it wakes the square root, and each of these wakes the next few before it goes on. One
//! thread that wakes all would keep the last waiting for `n` system calls.
//!
//! - TOGETHER-1: a node is on one list at most, and its waiter goes when it has been let go, not
//!   before.
//! - TOGETHER-2: from the exchange that takes the list on, nothing is touched but nodes, and of a
//!   node nothing after it was let go. So the primitive's memory may be gone as soon as the first
//!   waiter has returned.
//! - TOGETHER-3: a waiter that was woken and has others behind it wakes them before it returns.
//! - TOGETHER-4: a node whose `queue` names a node is one of [several](super::Several) of its
//!   waiter, which parks on the named node, the same or another: the thread that lets it go reads
//!   the name before, and wakes that node.
//! - TOGETHER-5: no waiter is left to one of several, and none of these to others. Its waiter may
//!   be at another list, where it waits to be let go by a thread that waits in turn to be let go
//!   here.
//!
//! A waiter whose thread is stopped between being woken and waking others keeps those waiting.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{
    Atomic, Budget, Deadline, Hint, Parked, Platform, Waiter, WaiterId, WaiterRef,
};

use super::spin;
use crate::arena;
use crate::lock::{Form, Standard};
use crate::nap;

/// Constants of primitives whose waiters are let go together (those of a lock's form, which mean
/// the same).
pub trait CrowdForm: Form {
    /// The most sleepers that the thread which lets them go wakes all by itself.
    const ALONE: u32 = 8;

    /// How long a waiter for an event spins, where CPUs suffice, before it sleeps, in nanoseconds:
    /// the cost of a sleep, so that it never spends more than twice the least (Karlin et al., SOSP
    /// 1991).
    fn event_spin_ns<P: Platform>() -> u32 {
        P::sleep_cost_ns()
    }
}

impl CrowdForm for Standard {}

/// No waiter polls: a thread that has to wait sleeps at once. Costs a wake each time, and no CPU.
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

/// The waiter waits to be let go. A word of 0 is that of a node which was wiped, in the child of a
/// fork.
const WAITING: u32 = 1;
const PARKED: u32 = 2;
/// The waiter has been let go, and told a word of the primitive's: `GONE + word`.
const GONE: u32 = 4;

/// How long a waiter that was refused to leave sleeps before it asks again.
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
    /// The node is gone: the process has forked under the waiter, which must begin anew.
    Lost,
}

impl<P: Platform> Member<P> {
    /// A node for a wait of the caller. `None`: there is none.
    pub(super) fn take() -> Option<Self> {
        let id = arena::<P>().take()?;
        let node = arena::<P>().resolve(id)?;
        // Relaxed, all: published by the exchange that puts the node on a list.
        let generation = node.generation.load(Relaxed);
        // Even: a fork in a signal handler has just wiped it.
        if generation.is_multiple_of(2) {
            return None;
        }
        node.status.store(WAITING, Relaxed);
        node.batch.store(0, Relaxed);
        node.queue.store(0, Relaxed);
        Some(Self { id, node, generation })
    }

    /// A node for one of several waits of the caller, which parks on this one: it is asleep from
    /// the start, for the threads that let it go.
    pub(super) fn take_beside(&self) -> Option<Self> {
        let beside = Self::take()?;
        beside.node.status.store(PARKED, Relaxed);
        // TOGETHER-4. Relaxed, both: as in `take`.
        beside.node.queue.store(self.reference().bits(), Relaxed);
        Some(beside)
    }

    /// This node, for the first of several waits; asleep as the nodes beside it are.
    pub(super) fn lend(&self) -> Self {
        // Relaxed, both: as in `take`.
        self.node.status.store(PARKED, Relaxed);
        // It names itself: lent.
        self.node.queue.store(self.reference().bits(), Relaxed);
        Self { id: self.id, ..*self }
    }

    /// Whether the node is that of several waits, whose owner gives it back.
    fn is_lent(&self) -> bool {
        // Relaxed: written by the caller.
        self.node.queue.load(Relaxed) == self.reference().bits()
    }

    /// Gives back a node that may have been lent: no wait has it any more.
    pub(super) fn give_lead(self) {
        // Relaxed: as in `take`.
        self.node.queue.store(0, Relaxed);
        self.give();
    }

    /// The reference to wake the node's waiter by.
    pub(super) fn reference(&self) -> WaiterRef {
        WaiterRef { index: self.id.index(), generation: self.generation }
    }

    /// The node's name.
    pub(super) fn id(&self) -> WaiterId {
        self.id
    }

    /// The node's index, which is the name of a list that begins with it.
    pub(super) fn index(&self) -> u32 {
        self.id.index()
    }

    /// Puts the node before the list `first`: returns the name of the list. The exchange that makes
    /// it known must be a releasing one.
    pub(super) fn stand_before(&self, first: u32) -> u32 {
        // Relaxed: see above.
        self.node.next.store(first, Relaxed);
        self.index()
    }

    /// Leaves the word to the `others` that may want it too, after it has changed under the caller
    /// for the `failures`th time: for a number of turns, drawn by lot, up to as many as there are
    /// others, and up to twice as many each time. Where all come at once and try again at once,
    /// each is in the way of all others.
    pub(super) fn stand_back<F: Form>(&self, failures: u32, others: u64) {
        const MOST: u64 = 256;
        let turn_ns = u64::from(F::SPIN.ns / 8);
        let longest_ns = (others.min(MOST) << failures.min(4)) * turn_ns;
        let ns = (u64::from(P::random()) * longest_ns) >> 32;
        // No thread changes the word: this is a delay. Relaxed: see above.
        let budget = Budget::ns(ns as u32);
        let _ = self.node.status.spin_while(Relaxed, budget, |status| status == WAITING);
    }

    /// Gives back the node, which is on no list.
    pub(super) fn give(self) {
        if !self.is_lent() && !self.is_lost() {
            arena::<P>().give(self.id);
        }
    }

    /// Whether the wait is over; if so, what was done before it was let go happens before.
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
        // Relaxed: written before we were let go, as what follows.
        let left = self.node.batch.load(Relaxed);
        wake_in_turn::<P>(self.node.next.load(Relaxed), left, status);
        self.give();
        Told::Gone(status - GONE)
    }

    /// Waits, spinning and then asleep, until the wait is over or `deadline` has passed; returns
    /// whether it is over. If not, the node is on its list still, as far as the caller can see.
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
        // Relaxed where it succeeds: a thread that finds us asleep looks at nothing that we have
        // written.
        if let Err(now) = status.compare_exchange(WAITING, PARKED, Relaxed, Acquire)
            && !Self::waits(now)
        {
            return true;
        }
        loop {
            // Whatever has ended the sleep: the status says whether the wait is over.
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

    /// The node that is parked on: this node, or the one that it names (TOGETHER-4).
    fn bed(&self) -> &'static Waiter<P> {
        // Relaxed: written by the caller.
        let named = WaiterRef::from_bits(self.node.queue.load(Relaxed));
        named.and_then(|bed| arena::<P>().resolve_index(bed.index)).unwrap_or(self.node)
    }

    /// Does what [`outlast`](Self::outlast) does; but when the deadline has passed it asks `leave`
    /// to take the caller off its list. If `leave` refuses, because the thread that lets the caller
    /// go is on the way, it waits on.
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

    /// Ends a wait, over or not: lets `leave` take the caller off its list, as in
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

    /// Spins as long as is worth it for a waiter that is to be let go soon; the waiter is to
    /// [outlast](Self::outlast) its wait after that.
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
    /// There was nothing to wait for.
    Refused,
    /// The waiter was let go.
    LetGo,
    /// The waiter is off the list, because the deadline had passed.
    GaveUp,
}

/// Waits on a list: `enlist` puts the caller there, unless there is nothing to wait for, and
/// `leave` takes it off when the deadline has passed, as in [`Member::outlast_unless`]. `None`:
/// there was no node.
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
        // The child of a fork: no thread there knows that it waits.
    }
}

/// Lets go all waiters of the list `first`, and tells them `word`. The caller has taken the list by
/// an acquiring exchange, and does not touch the primitive after that (TOGETHER-2).
pub(super) fn let_go<P: Platform, F: CrowdForm>(first: u32, word: u32) {
    let gone = GONE + word;
    let Sleepers { alone, count, of_several } = let_spinners_go::<P>(first, gone);
    wake_by_each_other::<P, F>(alone, count, gone);
    // TOGETHER-5.
    wake_in_turn::<P>(of_several, u32::MAX, gone);
}

/// Lets go the list of `count` sleepers.
fn wake_by_each_other<P: Platform, F: CrowdForm>(first: u32, count: u32, gone: u32) {
    if count <= F::ALONE {
        return wake_in_turn::<P>(first, count, gone);
    }
    let share = count.isqrt().max(2);
    let mut at = first;
    while let Some(node) = node::<P>(at) {
        // TOGETHER-3. Relaxed: published by letting the first go.
        node.batch.store(share - 1, Relaxed);
        let mine = at;
        for _ in 0..share {
            at = node_behind::<P>(at);
        }
        wake_in_turn::<P>(mine, 1, gone);
    }
}

/// The waiters of a list that sleep, as lists.
struct Sleepers {
    /// The waiters that wait for this alone, and how many these are.
    alone: u32,
    count: u32,
    /// The waiters that wait for several things.
    of_several: u32,
}

/// Lets go the waiters that do not sleep. Returns the others.
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

/// Lets go and wakes the first `count` of a list of sleepers.
fn wake_in_turn<P: Platform>(first: u32, count: u32, gone: u32) {
    let mut at = first;
    for _ in 0..count {
        let Some(node) = node::<P>(at) else { return };
        // Both before it is let go: the node may be another's after that.
        let sleeper = sleeper(at, node);
        at = node.next.load(Relaxed);
        // Release: as in `let_spinners_go`.
        node.status.store(gone, Release);
        if let Some(sleeper) = sleeper {
            P::unpark(sleeper);
        }
    }
}

/// The waiter to wake for a node of a list.
fn sleeper<P: Platform>(name: u32, node: &Waiter<P>) -> Option<WaiterRef> {
    // TOGETHER-4. Relaxed: acquired with the list.
    let bed = WaiterRef::from_bits(node.queue.load(Relaxed));
    bed.or_else(|| arena::<P>().reference(index(name)?))
}

/// The node of a list's name; `None` behind the last, and for names that another process has left.
fn node<P: Platform>(name: u32) -> Option<&'static Waiter<P>> {
    arena::<P>().resolve_index(index(name)?)
}

/// The index in a name, which has an epoch or, in a narrow word, none.
fn index(name: u32) -> Option<u32> {
    WaiterId::from_bits(name).map(WaiterId::index)
}

fn node_behind<P: Platform>(name: u32) -> u32 {
    node::<P>(name).map_or(0, |node| node.next.load(Relaxed))
}
