//! The broadcast: one thread says that something has happened, and all that wait go on.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | 16 bits, a bit for each node with sleepers; above them the generation |
//! | 128 n … | `nodes` | for each node, from n = 1, the list of those who sleep there |
//!
//! ```text
//!                      send                               send
//!   generation g ───────────────► generation g + 1 ───────────────► …
//!   spinners look at `state`      sleepers of g: some of each node are woken by who sends; the
//!                                 first of them that is up lets the others there go
//! ```
//!
//! - CAST-1: who waits with generation g is back after the first send behind that, and what was
//!   done before each send so far happens before.
//! - CAST-2: a node's bit is on while somebody sleeps there with the present generation, and only
//!   then: under the list's lock the first such turns it on, and the last that gives up turns it
//!   off, each while the generation is that. So who sends finds its sleepers where the bits are.
//! - CAST-3: sleepers of a generation are let go by who has ended it, and by those that it has let
//!   go; by nobody else. The first of these that is up takes the rest of its node, and lets them go
//!   as `together.rs` does, in a tree if they are many, before it is back.
//! - CAST-4: who has found the generation ended does not give up. So each node that who sends comes
//!   to has a waiter that is not back; it touches nothing after it has unlocked the last of their
//!   lists, and nothing but `state` if nobody sleeps. The memory may be gone as soon as all waiters
//!   are back, though the `send` that let them go is not.
//!
//! A node is a NUMA node or, on a machine of one, a share of the CPUs: what a list costs grows with
//! how many CPUs use it.
//!
//! # What it takes
//!
//! Simulated, in ns from before the send, with a waiter on each CPU but the sender's, and CPUs in
//! their first idle state (`tests/sim_wakes.rs` prints the figures):
//!
//! | sleepers | `opteron-64c` last, σ | `8s-192c` last, σ | `phi-228t` last, σ |
//! |---|---|---|---|
//! | **broadcast** | 28 500, 4 000 | 38 300, 5 000 | 46 200, 5 300 |
//! | each that is up takes four at a time | 28 400, 4 000 | 36 000, 4 700 | 498 000, 127 000 |
//! | … one at a time | 28 600, 4 000 | 262 000, 54 700 | not measured |
//! | one list, the square root of all (`Latch`) | 33 700, 2 800 | 73 300, 5 100 | 106 900, 6 500 |
//! | who sends wakes all, from lists by node | 71 400, 19 300 | 203 000, 58 000 | 265 000, 75 000 |
//! | one list, and one wakes all (`Condvar`) | 73 000, 19 800 | 221 000, 63 800 | 298 000, 84 900 |
//!
//! The losers meet at the lock of their list. Against one that wakes all, the last sleeper is back
//! 2.6, 5.8 and 6.5 times as soon, and σ is 5, 13 and 16 times less. Ten times as soon is not to be
//! had of sleepers on 64 CPUs: a wake takes its waker 1.1 µs there and the woken 4.2 µs. If each
//! that is up woke others at once, and finding them cost nothing, 63 would be up after some 19 µs,
//! a fourth of the serial loop's time. And where CPUs sleep so deep that it takes them far longer
//! to come up than all wakes take, one that wakes all is the best there is.
//!
//! | spinners | `opteron-64c` last, σ | `8s-192c` last, σ | `phi-228t` last, σ |
//! |---|---|---|---|
//! | **broadcast**: all look at one word | 500, 43 | 590, 56 | 1 500, 86 |
//! | a word for each, written one after the other | 7 100, 2 100 | 29 200, 9 300 | 53 100, 15 200 |
//!
//! [`CrowdForm::ALONE`], up to which who sends wakes all itself, is a little more than the wakes
//! that fit into the time in which the first of those that were woken comes up.
//!
//! # When to use what
//!
//! Waiters that go on with a mutex in hand want a [`Condvar`](super::Condvar): woken all at once
//! they would wait for the mutex next, so it moves them into the mutex's queue, and they are woken
//! one by one. Those that go on for themselves, or race for one of many things, want this.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use super::list::List;
use super::spin::spin;
use super::together::{CrowdForm, Listed, Member, let_go, wait_listed};
use crate::lock::Standard;
use crate::nap;

/// A broadcast, 1152 bytes with the usual eight nodes. All zero: nothing was sent, nobody waits.
#[repr(C)]
pub struct Broadcast<P: Platform, F: CrowdForm = Standard, const NODES: usize = 8> {
    state: Lines<P::U64>,
    nodes: [Lines<List<P>>; NODES],
    form: PhantomData<F>,
}

/// On two cache lines of its own: prefetchers take neighbours for one.
#[repr(C, align(128))]
struct Lines<T>(T);

/// How often was sent; to be compared with others of the same broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(u64);

/// A value of the state.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    const NODE_BITS: u32 = 16;

    fn generation(self) -> Generation {
        Generation(self.0 >> Self::NODE_BITS)
    }

    /// The bits of nodes that somebody sleeps on.
    fn nodes(self) -> u16 {
        self.0 as u16
    }

    /// After a send.
    fn next(self) -> Self {
        // Begins anew at the end.
        Self((self.generation().0 + 1) << Self::NODE_BITS)
    }

    fn with(self, node: usize) -> Self {
        Self(self.0 | 1 << node)
    }

    fn without(self, node: usize) -> Self {
        Self(self.0 & !(1 << node))
    }
}

impl Generation {
    /// How often was sent from `earlier` to here.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        (self.0.wrapping_sub(earlier.0)) & (u64::MAX >> State::NODE_BITS)
    }

    /// As a number, to be kept where this type is not known.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// What [`to_bits`](Self::to_bits) returned. A number of another origin is a generation that
    /// has ended.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What sleepers have in their nodes. Repeats after 2³² sends, which no sleeper sleeps through.
    fn tag(self) -> u32 {
        self.0 as u32
    }
}

/// How long a thread without a node sleeps between two looks.
const NAP_NS: u64 = 200_000;

impl<P: Platform, F: CrowdForm, const NODES: usize> Broadcast<P, F, NODES> {
    /// Nothing was sent, and nobody waits.
    pub const NEW: Self = {
        assert!(NODES > 0 && NODES <= State::NODE_BITS as usize, "1 to 16 nodes");
        Self {
            state: Lines(P::U64::ZERO),
            nodes: [const { Lines(List::NEW) }; NODES],
            form: PhantomData,
        }
    };

    /// The present generation. To be asked for before the caller looks whether it has to wait: what
    /// is sent from then on ends a wait with it. What was done before each send so far happens
    /// before the return.
    #[inline]
    pub fn now(&self) -> Generation {
        // Acquire: CAST-1; pairs with the release in `send`.
        State(self.state.0.load(Acquire)).generation()
    }

    /// Ends the waits of all that wait with the present generation. Where nobody sleeps this is one
    /// exchange; otherwise it wakes [`CrowdForm::ALONE`] sleepers or one a node, whichever are
    /// more, and these the others. Never blocks for longer than others hold a list.
    #[inline]
    pub fn send(&self) {
        let mut seen = State(self.state.0.load(Relaxed));
        // Release: CAST-1; pairs with the acquires of those who see the next generation. Those of
        // earlier sends are carried on: nothing but exchanges changes the state.
        while let Err(now) = self.state.0.compare_exchange(seen.0, seen.next().0, Release, Relaxed)
        {
            seen = State(now);
        }
        if seen.nodes() != 0 {
            self.wake(seen);
        }
    }

    /// Waits until the generation is another than `seen`; returns it.
    #[inline]
    pub fn wait(&self, seen: Generation) -> Generation {
        loop {
            if let Some(now) = self.wait_until(seen, None) {
                return now;
            }
        }
    }

    /// As [`wait`](Self::wait), but gives up when the deadline has passed: `None`.
    #[inline]
    pub fn wait_until(&self, seen: Generation, deadline: Option<Deadline>) -> Option<Generation> {
        self.newer(seen).or_else(|| self.wait_contended(seen, deadline))
    }

    /// Whether somebody sleeps with the present generation; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        State(self.state.0.load(Relaxed)).nodes() != 0
    }

    fn newer(&self, seen: Generation) -> Option<Generation> {
        Some(self.now()).filter(|&now| now != seen)
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(&self, seen: Generation, deadline: Option<Deadline>) -> Option<Generation> {
        let keep = |state| State(state).generation() == seen;
        if let Ok(now) = spin::<P, F, _>(&self.state.0, deadline, keep) {
            return Some(State(now).generation());
        }
        let here = Self::here();
        let enlist = |me: &_| self.enlist(me, here, seen);
        match wait_listed::<P, F>(deadline, enlist, |me| self.leave(me, here, seen)) {
            Some(Listed::LetGo) => self.pass_on(here, seen),
            Some(Listed::GaveUp) => return None,
            Some(Listed::Refused) => {}
            None => _ = nap::until_true::<P>(deadline, NAP_NS, || self.newer(seen).is_some()),
        }
        self.newer(seen)
    }

    /// Where the caller sleeps.
    fn here() -> usize {
        let here = if P::numa() { P::socket().0 } else { P::cpu().0 };
        here as usize % NODES
    }

    /// Puts the caller on the list, unless the generation has ended.
    fn enlist(&self, me: &Member<P>, here: usize, seen: Generation) -> bool {
        // Relaxed: published by the list's lock.
        me.node.wants.store(seen.tag(), Relaxed);
        self.nodes[here].0.with(|list| {
            let on = self.turn(seen, |state| state.with(here));
            if on {
                list.push(me.id(), me.node);
            }
            on
        })
    }

    /// Takes a caller that gives up off the list. `false`: it is to wait on, as it will be let go.
    fn leave(&self, me: &Member<P>, here: usize, seen: Generation) -> bool {
        self.nodes[here].0.with(|list| {
            let last = || list.wants_alone(me.node);
            let leaves = list.holds(me.id(), me.node)
                && self.turn(seen, |state| if last() { state.without(here) } else { state });
            if leaves {
                list.remove(me.id(), me.node);
            }
            leaves
        })
    }

    /// Changes the nodes' bits, unless the generation has ended.
    fn turn(&self, seen: Generation, change: impl Fn(State) -> State) -> bool {
        // Relaxed, all: CAST-2 is about one word. Who has ended the generation comes to the list
        // after us; had it been there before us, its lock would show us the end.
        let mut state = State(self.state.0.load(Relaxed));
        while state.generation() == seen {
            let new = change(state);
            if new.0 == state.0 {
                return true;
            }
            match self.state.0.compare_exchange(state.0, new.0, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    /// Wakes the first sleepers of each node, of the generation that has ended.
    #[cold]
    fn wake(&self, ended: State) {
        let share = (F::ALONE / ended.nodes().count_ones()).max(1);
        for (number, node) in self.nodes.iter().enumerate() {
            if ended.nodes() & 1 << number != 0 {
                let some = node.0.with(|list| list.take_who_want(ended.generation().tag(), share));
                // CAST-4.
                let_go::<P, F>(some, 0);
            }
        }
    }

    /// CAST-3: lets the rest of the node go, if nobody has yet.
    fn pass_on(&self, here: usize, ended: Generation) {
        // Relaxed inside: who has taken us off has left the others there, and it is seen.
        if !self.nodes[here].0.seems_empty() {
            let rest = self.nodes[here].0.with(|list| list.take_who_want(ended.tag(), u32::MAX));
            let_go::<P, F>(rest, 0);
        }
    }
}
