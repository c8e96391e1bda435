//! The latch: threads wait until a count has reached zero. A latch that counts from 1 is an event
//! that is set once.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–3 | `state` | bit 0, `QUEUED`: the list is not empty; above it, how much was counted down |
//! | 4–7 | `beside` | how much must be counted down, in addition to 1 |
//! | 8–23 | `list` | the waiters that sleep, or are about to |
//!
//! ```text
//!             count_down                  count_down to zero
//!   closed ◄────────────► closed ──────────────────────────────► open, for good
//!                                  `QUEUED`: lets all of the list go
//! ```
//!
//! - LATCH-1: no thread goes on before all was counted down, and what was done before each of these
//!   counts happens before what the thread does next.
//! - LATCH-2: `QUEUED` is on while a waiter is on the list. The thread that opens the latch sees
//!   `QUEUED` in its opening exchange, or the arriving waiter sees the latch open in the exchange
//!   that turns `QUEUED` on.
//! - LATCH-3: a thread that counts down touches nothing after its exchange, or, if that opened the
//!   latch and found `QUEUED`, after it has unlocked the list; only then does it let those waiters
//!   go.
//! - LATCH-4: a waiter that gives up and is the last on the list turns `QUEUED` off while the latch
//!   is closed; otherwise it waits on, because the thread that has opened the latch is on the way
//!   to the list. So the memory may be freed as soon as all waiters have returned, even if the
//!   `count_down` that let them go has not.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform};

use super::list::List;
use super::several::{Place, Several, Stands};
use super::spin::spin;
use super::together::{CrowdForm, Listed, Member, let_go, wait_listed};
use crate::lock::Standard;
use crate::nap;
use crate::policy;

/// The largest number that a [`Latch`] can count down from.
pub const MAX_COUNT: u32 = u32::MAX >> 1;

/// A latch, 24 bytes: opens once, when all is counted down. All zero bytes: a latch that counts
/// from 1.
#[repr(C)]
pub struct Latch<P: Platform, F: CrowdForm = Standard> {
    state: P::U32,
    beside: u32,
    list: List<P>,
    form: PhantomData<F>,
}

/// A value of the state.
#[derive(Clone, Copy)]
struct State(u32);

impl State {
    const QUEUED: u32 = 1;

    fn queued(self) -> bool {
        self.0 & Self::QUEUED != 0
    }

    fn done(self) -> u32 {
        self.0 >> 1
    }

    /// Returns the state after `more` was counted down.
    fn after(self, more: u32) -> Self {
        Self(self.0 + (more << 1))
    }
}

/// How long a thread without a node sleeps between two checks, in nanoseconds.
const NAP_NS: u64 = 200_000;

impl<P: Platform, F: CrowdForm> Latch<P, F> {
    /// A latch that opens when `count` was counted down; at once if that is 0.
    ///
    /// # Panics
    ///
    /// If `count` is more than [`MAX_COUNT`].
    #[must_use]
    pub const fn new(count: u32) -> Self {
        assert!(count <= MAX_COUNT, "the count of a latch is too large");
        let beside = count.wrapping_sub(1);
        Self { state: P::U32::ZERO, beside, list: List::NEW, form: PhantomData }
    }

    /// Counts down by `step`, or by what is left if that is less; the last count lets all waiters
    /// go. Blocks at most while other threads hold the list, and makes a system call only for
    /// waiters that sleep.
    #[inline]
    pub fn count_down(&self, step: u32) {
        let mut seen = State(self.state.load(Relaxed));
        loop {
            let left = self.count() - seen.done();
            if left == 0 {
                return;
            }
            let new = seen.after(step.min(left));
            // Release: LATCH-1; pairs with the acquires of the threads that find it open. Acquire:
            // for the waiters that we let go, what others have done before they counted down.
            match self.state.compare_exchange(seen.0, new.0, AcqRel, Relaxed) {
                Ok(_) if step >= left && seen.queued() => return self.open(),
                Ok(_) => return,
                Err(now) => seen = State(now),
            }
        }
    }

    /// Waits until the latch is open.
    #[inline]
    pub fn wait(&self) {
        while !self.wait_until(None) {}
    }

    /// Does what [`wait`](Self::wait) does, but gives up when the deadline has passed; returns
    /// whether the latch is open.
    #[inline]
    pub fn wait_until(&self, deadline: Option<Deadline>) -> bool {
        self.is_open() || self.wait_contended(deadline)
    }

    /// Begins a wait for one of several objects. Returns `None` if the latch is open.
    pub fn stand<'a>(&'a self, several: &'a Several<P>) -> Option<Place<'a, P>> {
        let me = several.member();
        let waits = match &me {
            Some(me) => self.enlist(me),
            None => !self.is_open(),
        };
        let place = Place::new(self, me);
        if waits { Some(place) } else { place.give() }
    }

    /// Returns whether all was counted down; if so, what was done before that happens before the
    /// return.
    #[inline]
    pub fn is_open(&self) -> bool {
        // Acquire: LATCH-1; pairs with the release in `count_down`.
        self.opened(State(self.state.load(Acquire)))
    }

    /// Returns how much is left to count down; may be stale at once.
    pub fn left(&self) -> u32 {
        self.count() - State(self.state.load(Relaxed)).done()
    }

    /// Returns whether a thread sleeps for the latch, or is about to; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        let seen = State(self.state.load(Relaxed));
        seen.queued() && !self.opened(seen)
    }

    fn count(&self) -> u32 {
        self.beside.wrapping_add(1)
    }

    fn opened(&self, seen: State) -> bool {
        seen.done() == self.count()
    }

    #[cold]
    #[inline(never)]
    fn wait_contended(&self, deadline: Option<Deadline>) -> bool {
        if spin::<P, F, _>(&self.state, deadline, |seen| !self.opened(State(seen))).is_ok() {
            return true;
        }
        match wait_listed::<P, F>(deadline, |me| self.enlist(me), |me| self.leave(me)) {
            Some(ended) => ended != Listed::GaveUp,
            None => nap::until_true::<P>(deadline, NAP_NS, || self.is_open()),
        }
    }

    /// Puts the caller on the list, unless the latch is open.
    fn enlist(&self, me: &Member<P>) -> bool {
        self.list.with(|list| {
            // Acquire: as in `is_open`. LATCH-2.
            let seen = State(self.state.fetch_or(State::QUEUED, Acquire));
            let closed = !self.opened(seen);
            if closed {
                list.push(me.id(), me.node);
            }
            closed
        })
    }

    /// Removes a caller that gives up from the list. Returns `false` if the caller must wait on,
    /// because it will be let go.
    fn leave(&self, me: &Member<P>) -> bool {
        self.list.with(|list| {
            let stays = !list.holds(me.id(), me.node) || list.is_short() && !self.dequeue();
            if !stays {
                list.remove(me.id(), me.node);
            }
            !stays
        })
    }

    /// LATCH-4: notes that the list is empty; returns `false`, without effect, if the latch is
    /// open.
    fn dequeue(&self) -> bool {
        // Relaxed: LATCH-2 is about one word.
        let mut seen = State(self.state.load(Relaxed));
        while !self.opened(seen) {
            let new = seen.0 & !State::QUEUED;
            match self.state.compare_exchange(seen.0, new, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = State(now),
            }
        }
        false
    }

    /// Lets all waiters on the list go.
    #[cold]
    fn open(&self) {
        let all = self.list.with(|list| list.take::<policy::None, F>(u32::MAX));
        // LATCH-3.
        let_go::<P, F>(all, 0);
    }
}

impl<P: Platform, F: CrowdForm> Stands<P> for Latch<P, F> {
    fn withdraw(&self, me: Member<P>) -> bool {
        me.withdraw::<F>(|me| self.leave(me))
    }

    /// Does nothing: the latch stays open for all waiters.
    fn pass_on(&self) {}
}
