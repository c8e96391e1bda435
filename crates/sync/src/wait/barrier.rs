//! The barrier: threads wait for each other, and go on when so many have come.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | who waits, 22 bits; above them how many came since the beginning, 42 bits |
//! | 8–11 | `nappers` | how many wait without a node, 22 bits; above them the process's epoch |
//! | 12–15 | `parties` | for how many it waits; 0 is 1 |
//!
//! ```text
//!             comes, and is not the last                comes as the last: is the leader
//!   (thread) ────────────────────────────► on the list ◄────────────────────────────────
//!                                               │          takes the list, lets all go
//!                                               ▼
//!                                            goes on
//! ```
//!
//! - BARRIER-1: nobody goes on before as many as `parties` have come; what each did before it came
//!   happens before what any of them does afterwards.
//! - BARRIER-2: one of them is the leader.
//! - BARRIER-3: who has come touches the barrier no more, except the last, by the same exchange by
//!   which it comes (TOGETHER-2). So it may be destroyed as soon as anybody has returned; unless
//!   one had to wait without a node, and looks at it: [`Barrier::retire`] waits for those.
//!
//! The list is empty when the next round begins, so no count of rounds can run over. Only who waits
//! without a node tells a round by its number; those repeat after 2⁴² arrivals.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::together::{CrowdForm, Member, Told, let_go};
use crate::arena;
use crate::lock::Standard;
use crate::nap;

/// A barrier, 16 bytes, to be used any number of times. All zero: one for a single thread.
#[repr(C, align(8))]
pub struct Barrier<P: Platform, F: CrowdForm = Standard> {
    state: P::U64,
    nappers: P::U32,
    parties: u32,
    form: PhantomData<F>,
}

/// A value of the state.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State(u64);

impl State {
    const COUNT_BITS: u32 = u64::BITS - WaiterId::INDEX_BITS;

    fn new(waiters: u32, came: u64) -> Self {
        Self(came << WaiterId::INDEX_BITS | u64::from(waiters))
    }

    /// Index of who came last of those that wait with a node; 0 is nobody.
    fn waiters(self) -> u32 {
        (self.0 & ((1 << WaiterId::INDEX_BITS) - 1)) as u32
    }

    fn came(self) -> u64 {
        self.0 >> WaiterId::INDEX_BITS
    }

    /// The number of the round that goes on, with so many parties.
    fn round(self, parties: u64) -> u64 {
        self.came() / parties
    }

    /// After one more has come, with this waiter at the head of the list, or nobody.
    fn after_one_more(self, parties: u64, waiters: u32) -> Self {
        // Wraps at the end of a round.
        let rounds = (1 << Self::COUNT_BITS) / parties;
        Self::new(waiters, (self.came() + 1) % (rounds * parties))
    }

    /// How many have to come yet in this round.
    fn lacks(self, parties: u64) -> u64 {
        parties - self.came() % parties
    }

    /// Whether the next that comes is the last of its round.
    fn lacks_one(self, parties: u64) -> bool {
        self.lacks(parties) == 1
    }

    /// The round begins anew.
    fn begun_anew(self, parties: u64) -> Self {
        Self::new(0, self.round(parties) * parties)
    }
}

/// How long a thread without a node sleeps between two looks.
const NAP_NS: u64 = 200_000;
/// How one came that has come.
enum Came {
    Last,
    /// In the round of this number.
    Early(u64),
}

impl<P: Platform, F: CrowdForm> Barrier<P, F> {
    /// A barrier for `parties` threads; 0 is the same as 1.
    #[must_use]
    pub const fn new(parties: u32) -> Self {
        Self { state: P::U64::ZERO, nappers: P::U32::ZERO, parties, form: PhantomData }
    }

    /// For how many threads it waits.
    pub fn parties(&self) -> u32 {
        self.parties.max(1)
    }

    /// Waits until as many threads as there are parties have come, the caller included. `true` for
    /// one of them, the leader; which one is not said.
    ///
    /// Memory that holds the barrier may be freed, or used otherwise, once any of them has
    /// returned and no others will come; but see [`retire`](Self::retire).
    pub fn wait(&self) -> bool {
        loop {
            let Some(me) = Member::<P>::take() else { return self.wait_without_node() };
            if let Came::Last = self.come(Some(&me)) {
                me.give();
                return true;
            }
            if let Told::Gone(_) = me.wait::<F>() {
                return false;
            }
            // The child of a fork: those that have come are not there.
        }
    }

    /// Waits until nobody looks at the barrier any more that has been let go: for who wants to free
    /// its memory, after a wait of its own has returned. At once unless a thread had to wait
    /// without a node; those are had unless millions wait, or the system refuses the memory. Who
    /// borrows the barrier for the whole of its wait, as safe code does, needs none of this.
    pub fn retire(&self) {
        // Acquire: their last looks; pairs with the release in `wait_without_node`.
        while Self::count(self.nappers.load(Acquire)) != 0 {
            nap::nap::<P>(NAP_NS);
        }
    }

    fn wait_without_node(&self) -> bool {
        let parties = u64::from(self.parties());
        self.recount(Relaxed, |nappers| nappers + 1);
        let came = self.come(None);
        if let Came::Early(round) = came {
            // Acquire: BARRIER-1; pairs with the release of the last.
            while State(self.state.load(Acquire)).round(parties) == round {
                nap::nap::<P>(NAP_NS);
            }
        }
        // Release: our last look; pairs with the acquire in `retire`.
        self.recount(Release, |nappers| nappers.saturating_sub(1));
        matches!(came, Came::Last)
    }

    /// Comes, with a node if there is one; as the last, lets all others go.
    fn come(&self, me: Option<&Member<P>>) -> Came {
        let parties = u64::from(self.parties());
        // Acquire, here and where the exchange fails: the node of who came last; pairs with the
        // release of its exchange.
        let mut seen = State(self.state.load(Acquire));
        for failures in 1.. {
            let there = self.without_strangers(seen);
            let last = there.lacks_one(parties);
            let waiters = match me {
                _ if last => 0,
                Some(me) => me.stand_before(there.waiters()),
                None => there.waiters(),
            };
            let after = there.after_one_more(parties, waiters);
            // BARRIER-1. Release: our past and our node. Those of the others were acquired with the
            // state that we have seen, which is written once; each of these exchanges carries on
            // the one before it.
            match self.state.compare_exchange(seen.0, after.0, Release, Acquire) {
                Ok(_) if last => {
                    let_go::<P, F>(there.waiters(), 0);
                    return Came::Last;
                }
                Ok(_) => return Came::Early(there.round(parties)),
                Err(now) => seen = State(now),
            }
            if let Some(me) = me {
                me.stand_back::<F>(failures, seen.lacks(parties));
                seen = State(self.state.load(Acquire));
            }
        }
        unreachable!("nobody fails so often")
    }

    /// The state without threads of another process: our parent's, before a fork.
    fn without_strangers(&self, seen: State) -> State {
        let waiters = seen.waiters();
        if waiters == 0 || arena::<P>().resolve_index(waiters).is_some() {
            return seen;
        }
        seen.begun_anew(self.parties().into())
    }

    /// Changes the count of nappers.
    fn recount(&self, order: Ordering, change: impl Fn(u32) -> u32) {
        let mut seen = self.nappers.load(Relaxed);
        loop {
            let new = P::epoch() << WaiterId::INDEX_BITS | change(Self::count(seen));
            match self.nappers.compare_exchange(seen, new, order, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// How many threads of this process nap.
    fn count(nappers: u32) -> u32 {
        let ours = nappers >> WaiterId::INDEX_BITS == P::epoch();
        if ours { nappers & ((1 << WaiterId::INDEX_BITS) - 1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_of_arrivals_begins_anew_at_the_end_of_a_round() {
        for parties in [1, 2, 3, 7, 1000, u64::from(u32::MAX)] {
            let rounds = (1 << State::COUNT_BITS) / parties;
            let last = State::new(5, rounds * parties - 1);
            assert!(last.lacks_one(parties) && last.round(parties) == rounds - 1);
            assert!(last.after_one_more(parties, 0) == State(0));
            let first = State(0).after_one_more(parties, 9);
            assert_eq!((first.came(), first.waiters()), (1 % (rounds * parties), 9));
        }
    }

    #[test]
    fn a_round_that_begins_anew_has_its_number_and_nobody_in_it() {
        let parties = 5;
        let state = State::new(77, 13);
        assert_eq!(state.round(parties), 2);
        assert!(state.begun_anew(parties) == State::new(0, 10));
        let complete = State::new(77, 14).after_one_more(parties, 0);
        assert_eq!((complete.round(parties), complete.waiters()), (3, 0));
    }
}
