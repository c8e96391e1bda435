//! The barrier: threads wait for each other, and go on when a given number of them have come.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | the waiters, 22 bits; bit 22, `LISTED`; above, the number of arrivals so far |
//! | 8–11 | `lookers` | how many threads look at it until they return, 22 bits; above, the epoch |
//! | 12–15 | `parties` | the number of threads that it waits for; 0 means 1 |
//! | 16–31 | `list` | the waiters with a deadline |
//!
//! ```text
//!             comes, and is not the last                comes as the last: is the leader
//!   (thread) ────────────────────────────► on the list ◄────────────────────────────────
//!            ◄────────────────────────────      │          takes the list, lets all go
//!              gives up, as if not come         ▼
//!                                            goes on
//! ```
//!
//! A waiter without a deadline stands in the list that `state` names, from which no single waiter
//! can be removed; the others stand in `list`, behind its lock.
//!
//! - BARRIER-1: no thread goes on before `parties` threads have come and not given up; what each
//!   did before it came happens before what any of them does afterwards.
//! - BARRIER-2: one of them is the leader.
//! - BARRIER-3: a thread that has come no longer touches the barrier, except the last, before it
//!   lets any thread go (TOGETHER-2). So the barrier may be destroyed as soon as any thread has
//!   returned; unless a thread had to wait without a node, or with a deadline: [`Barrier::retire`]
//!   waits for such threads.
//! - BARRIER-4: `LISTED` is on while a waiter of the present round is in `list`, and changes under
//!   the list's lock, or with the round. A waiter that gives up takes its arrival back in the round
//!   in which it came. If that round is over it waits on: the last thread has come and is on the
//!   way to the list, from which it takes only the waiters of its round.
//!
//! The lists are empty when the next round begins, or hold no other waiters, so no count of rounds
//! can overflow. A waiter without a node, or in `list`, identifies a round by its number; numbers
//! repeat after 2⁴¹ arrivals, and in `list` after 2³² rounds.

mod lookers;
mod state;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use self::state::State;
use super::list::{List, Locked};
use super::together::{CrowdForm, Member, Told, let_go};
use crate::arena;
use crate::lock::Standard;
use crate::nap;

/// A barrier, 32 bytes; may be used any number of times. All zero bytes: a barrier for a single
/// thread.
#[repr(C, align(8))]
pub struct Barrier<P: Platform, F: CrowdForm = Standard> {
    state: P::U64,
    lookers: P::U32,
    parties: u32,
    list: List<P>,
    form: PhantomData<F>,
}

/// How long a thread without a node sleeps between two checks, in nanoseconds.
const NAP_NS: u64 = 200_000;

/// How a thread that may have to wait comes to the barrier.
#[derive(Clone, Copy)]
enum How<'a, P: Platform> {
    /// With a node, for as long as it takes.
    Patient(&'a Member<P>),
    /// With a node that it puts into the list, whose lock it holds.
    Listed,
    /// Without a node.
    Napping,
}

/// How a thread has come.
enum Came {
    /// As the last, which must [open](Barrier::open) the state that it has found.
    Last(State),
    /// In the round of this number.
    Early(u64),
}

impl<P: Platform, F: CrowdForm> Barrier<P, F> {
    /// A barrier for `parties` threads; 0 is the same as 1.
    #[must_use]
    pub const fn new(parties: u32) -> Self {
        Self {
            state: P::U64::ZERO,
            lookers: P::U32::ZERO,
            parties,
            list: List::NEW,
            form: PhantomData,
        }
    }

    /// Returns the number of threads that the barrier waits for.
    pub fn parties(&self) -> u32 {
        self.parties.max(1)
    }

    /// Waits until as many threads as there are parties have come, the caller included. Returns
    /// `true` for one of them, the leader; which one is not specified.
    ///
    /// Memory that holds the barrier may be freed or reused once any of them has returned and no
    /// others will come; but see [`retire`](Self::retire).
    pub fn wait(&self) -> bool {
        loop {
            let Some(me) = Member::<P>::take() else {
                return self.look_on(|| self.nap(None)) == Some(true);
            };
            if let Came::Last(there) = self.come(How::Patient(&me)) {
                me.give();
                self.open(there);
                return true;
            }
            if let Told::Gone(_) = me.wait::<F>() {
                return false;
            }
            // This is the child of a fork: the threads that have come do not exist here.
        }
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed: then it
    /// returns `None`, and the caller does not count as come. The memory must stay until
    /// [`retire`](Self::retire) has returned.
    pub fn wait_until(&self, deadline: Deadline) -> Option<bool> {
        self.look_on(|| self.wait_listed(deadline))
    }

    fn wait_listed(&self, deadline: Deadline) -> Option<bool> {
        loop {
            let Some(me) = Member::<P>::take() else { return self.nap(Some(deadline)) };
            let round = match self.list.with(|list| self.enlist(list, &me)) {
                Came::Early(round) => round,
                Came::Last(there) => {
                    me.give();
                    self.open(there);
                    return Some(true);
                }
            };
            if !me.outlast_unless::<F>(Some(deadline), || self.leave(&me, round)) {
                me.give();
                return None;
            }
            if let Told::Gone(_) = me.end() {
                return Some(false);
            }
        }
    }

    /// Comes, and waits without a node.
    fn nap(&self, deadline: Option<Deadline>) -> Option<bool> {
        let round = match self.come(How::Napping) {
            Came::Early(round) => round,
            Came::Last(there) => {
                self.open(there);
                return Some(true);
            }
        };
        // Acquire: BARRIER-1; pairs with the release of the last.
        let over = || self.round_of(State(self.state.load(Acquire))) != round;
        let over = nap::until_true::<P>(deadline, NAP_NS, over) || !self.take_back(round, || true);
        over.then_some(false)
    }

    /// Puts the caller on the list, unless it is the last.
    fn enlist(&self, list: &Locked<'_, P>, me: &Member<P>) -> Came {
        self.forget_strangers(list);
        let came = self.come(How::Listed);
        if let Came::Early(round) = came {
            // Relaxed: published by the list's lock.
            me.node.wants.store(round as u32, Relaxed);
            list.push(me.id(), me.node);
        }
        came
    }

    /// Removes a caller that gives up from the list. Returns `false` if the caller must wait on,
    /// because it will be let go.
    fn leave(&self, me: &Member<P>, round: u64) -> bool {
        self.list.with(|list| {
            let others = || !list.wants_alone(me.node);
            let leaves = list.holds(me.id(), me.node) && self.take_back(round, others);
            if leaves {
                list.remove(me.id(), me.node);
            }
            leaves
        })
    }

    /// BARRIER-4: takes an arrival back, unless its round is over. `LISTED` stays on if `others`
    /// are in the list.
    fn take_back(&self, round: u64, others: impl Fn() -> bool) -> bool {
        // Acquire, here and where the exchange fails: BARRIER-1, for a thread without a node that
        // can no longer give up; pairs with the release of the last.
        let mut seen = State(self.state.load(Acquire));
        while self.round_of(seen) == round {
            let less = seen.after_one_less().with_listed(seen.listed() && others());
            // Relaxed where it succeeds: it publishes nothing.
            match self.state.compare_exchange(seen.0, less.0, Relaxed, Acquire) {
                Ok(_) => return true,
                Err(now) => seen = State(now),
            }
        }
        false
    }

    /// Counts the caller as come; the last thread must let all others go.
    fn come(&self, how: How<'_, P>) -> Came {
        let parties = u64::from(self.parties());
        // Acquire, here and where the exchange fails: the node of the last waiter; pairs with the
        // release of its exchange.
        let mut seen = State(self.state.load(Acquire));
        if seen.listed() && self.list.is_inherited() {
            self.list.with(|list| self.forget_strangers(list));
            seen = State(self.state.load(Acquire));
        }
        for failures in 1.. {
            let there = self.without_strangers(seen);
            let last = there.lacks_one(parties);
            let (waiters, listed) = match how {
                _ if last => (0, false),
                How::Patient(me) => (me.stand_before(there.waiters()), there.listed()),
                How::Listed => (there.waiters(), true),
                How::Napping => (there.waiters(), there.listed()),
            };
            let after = there.after_one_more(parties, waiters).with_listed(listed);
            // BARRIER-1. Release: our past and our node. Those of the others were acquired with the
            // state that we have seen; each of these exchanges continues the release sequence of
            // the one before it.
            match self.state.compare_exchange(seen.0, after.0, Release, Acquire) {
                Ok(_) if last => return Came::Last(there),
                Ok(_) => return Came::Early(there.round(parties)),
                Err(now) => seen = State(now),
            }
            if let How::Patient(me) = how {
                me.stand_back::<F>(failures, seen.lacks(parties));
                seen = State(self.state.load(Acquire));
            }
        }
        unreachable!("nobody fails so often")
    }

    /// Lets all others of the round go; called by its last thread.
    fn open(&self, there: State) {
        let round = self.round_of(there) as u32;
        let take = || self.list.with(|list| list.take_who_want(round, u32::MAX));
        let listed = if there.listed() { take() } else { 0 };
        // BARRIER-3.
        let_go::<P, F>(listed, 0);
        let_go::<P, F>(there.waiters(), 0);
    }

    fn round_of(&self, seen: State) -> u64 {
        seen.round(self.parties().into())
    }

    /// Returns the state without threads of another process: our parent's, before a fork.
    fn without_strangers(&self, seen: State) -> State {
        let waiters = seen.waiters();
        if waiters == 0 || arena::<P>().resolve_index(waiters).is_some() {
            return seen;
        }
        seen.begun_anew(self.parties().into())
    }

    /// Forgets the list that our parent has left: if it has no waiter of this process, `LISTED` is
    /// our parent's.
    fn forget_strangers(&self, list: &Locked<'_, P>) {
        if list.first().is_some() {
            return;
        }
        let mut seen = State(self.state.load(Relaxed));
        // Relaxed: what is forgotten orders nothing.
        while seen.listed() {
            let anew = seen.begun_anew(self.parties().into());
            match self.state.compare_exchange(seen.0, anew.0, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(now) => seen = State(now),
            }
        }
        list.empty();
    }
}
