//! The broadcast: one thread sends, and all waiters go on.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | the generation, and a bit for each node with sleepers: [`state`] |
//! | 8–15 | `woken` | the last generation whose sleepers on `state` were all woken, plus 1 |
//! | 128 n … | `nodes` | for each node, from n = 1: the waiters that sleep there on a list |
//!
//! ```text
//!                      send                               send
//!   generation g ───────────────► generation g + 1 ───────────────► …
//!   spinners look at `state`      sleepers of g: the sender wakes some; those that are awake
//!                                 let others go
//! ```
//!
//! Threads sleep on `state`, if the platform supports it and they are not too many: one call wakes
//! several. Others, and fibers, sleep on lists of nodes.
//!
//! - CAST-1: a thread that waits with generation g returns after the first send that follows it,
//!   and is ordered after what was done before each send so far.
//! - CAST-2: a node's bit of lists is on while a waiter sleeps there with the present generation,
//!   and only then: under the list's lock the first such waiter turns it on, and the last that
//!   gives up turns it off, each while that generation is present. So a sender finds its sleepers
//!   where the bits are.
//! - CAST-3: sleepers of a generation are let go only by the sender that has ended it, and by
//!   waiters that it has let go. The first such waiter that is awake takes the rest of its list,
//!   and lets these go as `together.rs` does, in a tree if they are many, before it returns.
//! - CAST-4: a waiter that has found the generation ended does not give up. So each list that the
//!   sender comes to has a waiter that has not returned; the sender touches nothing after it has
//!   unlocked the last list, and only `state` if no waiter sleeps on a list: the word on which
//!   others sleep is used only by its address. The memory may be freed as soon as all waiters have
//!   returned, even if the `send` that let them go has not.
//! - CAST-5, about the waiters that sleep on `state`, is in [`places`].
//!
//! A node is a NUMA node or, on a machine with only one, a share of the CPUs: the cost of a list
//! grows with the number of CPUs that use it.
//!
//! # Performance
//!
//! Simulated, in ns from before the send, with a waiter on each CPU but the sender's, and CPUs in
//! their first idle state (`tests/sim/wakes.rs` prints the figures):
//!
//! | sleepers | `opteron-64c` last, σ | `8s-192c` last, σ | `phi-228t` last, σ |
//! |---|---|---|---|
//! | **broadcast** of threads | 22 000, 2 400 | 40 000, 7 200 | 49 200, 7 000 |
//! | **broadcast** of fibers | 28 500, 4 000 | 38 200, 5 000 | 46 500, 5 400 |
//! | one list, the square root (`Latch`) | 33 700, 2 800 | 73 300, 5 100 | 106 900, 6 500 |
//! | the sender wakes all, by one call | 55 200, 12 600 | 165 000, 37 400 | 191 000, 38 500 |
//! | one list, and one wakes all (`Condvar`) | 73 000, 19 800 | 221 000, 63 800 | 298 000, 84 900 |
//!
//! Threads beyond the 72nd, and fibers, sleep on lists. Compared with the last row, the serial
//! loop, the last thread returns 3.3, 5.5 and 6.1 times as soon, and σ is 8, 9 and 12 times less.
//! Ten times as soon is not possible with sleepers on 64 CPUs: there a wake takes the waker 0.8 µs
//! and the woken thread 4.2 µs. If each woken thread woke others at once, without contention, 63
//! would be awake after 16 µs, more than a fifth of the loop's time; so no deeper tree comes near.
//! And where CPUs sleep so deeply that they take far longer to wake up than all wakes take, it is
//! best that one thread wakes all.
//!
//! Tried and rejected, in the same order: on the word, one waiter of each node wakes the others of
//! its node (48 300, 141 000 and 282 000: to find them it looks at all sleepers, under one lock);
//! all waiters on the word, however many (22 000, 59 800 and 112 000). On lists, each woken waiter
//! takes four at a time (28 400, 36 000 and 498 000) or one (28 600 and 262 000): they contend for
//! the lock of their list.
//!
//! | spinners | `opteron-64c` last, σ | `8s-192c` last, σ | `phi-228t` last, σ |
//! |---|---|---|---|
//! | **broadcast**: all look at one word | 500, 43 | 590, 56 | 1 500, 86 |
//! | a word for each, written one after the other | 7 100, 2 100 | 29 200, 9 300 | 53 100, 15 200 |
//!
//! [`CrowdForm::ALONE`], up to which the sender wakes all itself, is a little more than the number
//! of wakes that fit into the time that the first woken waiter takes to wake up.
//!
//! # When to use what
//!
//! For waiters that continue with a mutex held, use a [`Condvar`](super::Condvar): woken all at
//! once they would next wait for the mutex, so it moves them into the mutex's queue, and they are
//! woken one by one. For waiters that continue independently, or race for one of many objects, use
//! this.

mod places;
mod state;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use self::state::{MOST_NODES, State};
use super::list::List;
use super::spin::spin;
use super::together::{CrowdForm, Listed, Member, let_go, wait_listed};
use crate::lock::Standard;
use crate::nap;

pub use self::state::Generation;

/// A broadcast, 1152 bytes with the default eight nodes. All zero bytes: nothing was sent, no
/// thread waits.
#[repr(C)]
pub struct Broadcast<P: Platform, F: CrowdForm = Standard, const NODES: usize = 8> {
    head: Lines<Head<P>>,
    nodes: [Lines<List<P>>; NODES],
    form: PhantomData<F>,
}

#[repr(C)]
struct Head<P: Platform> {
    state: P::U64,
    woken: P::U64,
}

/// On two separate cache lines, because prefetchers treat two neighbouring lines as one.
#[repr(C, align(128))]
struct Lines<T>(T);

/// How long a thread without a node sleeps between two checks, in nanoseconds.
const NAP_NS: u64 = 200_000;

impl<P: Platform, F: CrowdForm, const NODES: usize> Broadcast<P, F, NODES> {
    /// A broadcast in which nothing was sent, and for which no thread waits.
    pub const NEW: Self = {
        assert!(NODES > 0 && NODES <= MOST_NODES, "1 to 8 nodes");
        assert!(F::ALONE > 0, "one is woken at least");
        Self {
            head: Lines(Head { state: P::U64::ZERO, woken: P::U64::ZERO }),
            nodes: [const { Lines(List::NEW) }; NODES],
            form: PhantomData,
        }
    };

    /// Returns the present generation. Call this before checking whether to wait: each later send
    /// ends a wait with the returned generation. What was done before each send so far happens
    /// before the return.
    #[inline]
    pub fn now(&self) -> Generation {
        // Acquire: CAST-1; pairs with the release in `send`.
        State(self.head.0.state.load(Acquire)).generation()
    }

    /// Ends the waits of all threads that wait with the present generation. Where no waiter sleeps,
    /// and no crowd slept with the generation before, this is one exchange. One call wakes all
    /// sleepers on the word; but if more than [`CrowdForm::ALONE`] sleep, of several nodes, it
    /// wakes `ALONE` of them, and these wake the others. Of the sleepers on lists it always wakes
    /// `ALONE`, or one per list if that is more. Blocks at most while other threads hold a list.
    #[inline]
    pub fn send(&self) {
        let word = &raw const self.head.0.state;
        let mut seen = State(self.head.0.state.load(Relaxed));
        let mut late = self.sleeps_late(seen);
        // Release: CAST-1; pairs with the acquires of threads that see the next generation. The
        // release sequences of earlier sends continue, because only exchanges change the state.
        while let Err(now) =
            self.head.0.state.compare_exchange(seen.0, seen.next(F::ALONE).0, Release, Relaxed)
        {
            seen = State(now);
            late = self.sleeps_late(seen);
        }
        if seen.sleepers() != 0 || late {
            Self::wake_sleepers(word, seen, late);
        }
        if seen.lists() != 0 {
            self.wake_lists(seen);
        }
    }

    /// Waits until the generation differs from `seen`; returns it.
    #[inline]
    pub fn wait(&self, seen: Generation) -> Generation {
        loop {
            if let Some(now) = self.wait_until(seen, None) {
                return now;
            }
        }
    }

    /// Does what [`wait`](Self::wait) does, but gives up, and returns `None`, when the deadline has
    /// passed.
    #[inline]
    pub fn wait_until(&self, seen: Generation, deadline: Option<Deadline>) -> Option<Generation> {
        self.newer(seen).or_else(|| self.wait_contended(seen, deadline))
    }

    /// Returns whether a thread sleeps with the present generation; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        let state = State(self.head.0.state.load(Relaxed));
        state.lists() != 0 || state.sleepers() != 0
    }

    fn newer(&self, seen: Generation) -> Option<Generation> {
        Some(self.now()).filter(|&now| now != seen)
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(&self, seen: Generation, deadline: Option<Deadline>) -> Option<Generation> {
        let keep = |state| State(state).generation() == seen;
        // If other waiters have gone to sleep because CPUs are short, this one does not spin at
        // all.
        if !(self.has_waiters() && P::crowded())
            && let Ok(now) = spin::<P, F, _>(&self.head.0.state, deadline, keep)
        {
            return Some(State(now).generation());
        }
        if P::waits_on_words()
            && let Ok(now) = self.sleep(seen, deadline)
        {
            return now;
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

    /// Returns the index of the list on which the caller sleeps.
    fn here() -> usize {
        let here = if P::numa() { P::socket().0 } else { P::cpu().0 };
        here as usize % NODES
    }

    /// Puts the caller on the list, unless the generation has ended.
    fn enlist(&self, me: &Member<P>, here: usize, seen: Generation) -> bool {
        // Relaxed: published by the list's lock.
        me.node.wants.store(seen.tag(), Relaxed);
        self.nodes[here].0.with(|list| {
            let on = self.turn(seen, |state| state.with_list(here));
            if on {
                list.push(me.id(), me.node);
            }
            on
        })
    }

    /// Removes a caller that gives up from the list. Returns `false` if the caller must wait on,
    /// because it will be let go.
    fn leave(&self, me: &Member<P>, here: usize, seen: Generation) -> bool {
        self.nodes[here].0.with(|list| {
            let last = || list.wants_alone(me.node);
            let leaves = list.holds(me.id(), me.node)
                && self.turn(seen, |state| if last() { state.without_list(here) } else { state });
            if leaves {
                list.remove(me.id(), me.node);
            }
            leaves
        })
    }

    /// Changes the nodes' bits, unless the generation has ended.
    fn turn(&self, seen: Generation, mut change: impl FnMut(State) -> State) -> bool {
        // Relaxed, all: CAST-2 is about one word. A sender that has ended the generation comes to
        // the list after us; had it been there before us, the list's lock would have shown us the
        // end.
        let mut state = State(self.head.0.state.load(Relaxed));
        while state.generation() == seen {
            let new = change(state);
            if new == state {
                return true;
            }
            match self.head.0.state.compare_exchange(state.0, new.0, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = State(now),
            }
        }
        false
    }

    /// Wakes the first waiters on each list, of the generation that has ended.
    #[cold]
    fn wake_lists(&self, ended: State) {
        let share = (F::ALONE / ended.lists().count_ones()).max(1);
        for (number, list) in self.nodes.iter().enumerate() {
            if ended.lists() & 1 << number != 0 {
                let tag = ended.generation().tag();
                let some = list.0.with(|list| list.take_who_want(tag, share));
                // CAST-4.
                let_go::<P, F>(some, 0);
            }
        }
    }

    /// CAST-3: lets the rest of the list go, unless another thread has.
    fn pass_on(&self, here: usize, ended: Generation) {
        let list = &self.nodes[here].0;
        // Relaxed inside: we see that the thread that removed us has left the others there.
        if !list.seems_empty() {
            let rest = list.with(|list| list.take_who_want(ended.tag(), u32::MAX));
            let_go::<P, F>(rest, 0);
        }
    }
}
