//! The semaphore: a number of permits, 16 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | the permits, and the head's requests: `state.rs` |
//! | 8–11 | `tail` | name of the last waiter, 0 if no thread waits |
//! | 12–15 | `first` | initial number of permits |
//!
//! Waiters stand in a queue like the mutex's (`contended.rs`), with the same sleep, timeouts and
//! fairness. The difference is that a thread that takes a permit need not give it back, so no
//! waiter is left asleep if there are permits for it.
//!
//! - SEM-1: no more permits are taken than there were; what was done before a release happens
//!   before what the thread that takes the permit does.
//! - SEM-2: a sleeping head is named in `state` with `WAKE` set, or has a wake coming, or there are
//!   fewer permits than it wants: `WAKE` is set only by an exchange that finds fewer than that, and
//!   the next release calls the head. A head that has got its permits sets it for the waiter behind
//!   it, or wakes that waiter.
//! - SEM-3: nothing of the semaphore is touched after the exchange that releases; that exchange
//!   returns the name of the waiter to wake. So the thread that had the last permit may destroy the
//!   semaphore.

mod head;
mod state;

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use super::contended::Contended;
use super::fair::Patience;
use super::form::{Form, Standard};
use super::queue::TailId;
use super::turn::Wait;
use super::wake::call;
use crate::policy::{self, Policy};
use head::Entry;
pub use state::MAX_PERMITS;
use state::{Heed, State};

/// A counting semaphore, 16 bytes.
///
/// Waiters are served in the order in which they came. An arriving waiter takes a free permit ahead
/// of them. A waiter that was called may be overtaken in this way for at least
/// [`Form::PATIENCE_NS`], and then no more: the waiter itself ends it if it runs; otherwise a
/// thread that gives permits does.
#[repr(C, align(8))]
pub struct Semaphore<P: Platform, Q: Policy = policy::None, F: Form = Standard> {
    state: P::U64,
    tail: TailId<P>,
    first: u32,
    marker: PhantomData<(Q, F)>,
}

/// The error of a release that would make more than [`MAX_PERMITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPermits;

impl fmt::Display for TooManyPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a semaphore has no room for more than {MAX_PERMITS} permits")
    }
}

impl core::error::Error for TooManyPermits {}

impl<P: Platform, Q: Policy, F: Form> Semaphore<P, Q, F> {
    /// A semaphore that has this many `permits`. A semaphore of zero bytes has none.
    ///
    /// # Panics
    ///
    /// If `permits` is more than [`MAX_PERMITS`].
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        assert!(permits <= MAX_PERMITS, "too many permits");
        Self { state: P::U64::ZERO, tail: TailId::NEW, first: permits, marker: PhantomData }
    }

    /// Takes a permit; blocks until the caller has it.
    #[inline]
    pub fn acquire(&self) {
        self.acquire_many(1);
    }

    /// The part of [`acquire`](Self::acquire) without contention: takes a permit if one is free and
    /// none is kept for a waiter. For callers that need to know whether they would have to wait.
    #[inline]
    pub fn acquire_uncontended(&self) -> bool {
        self.take(1, Heed::Head)
    }

    /// Takes `wanted` permits together; blocks until the caller has them. While the permits gather,
    /// arriving waiters that want fewer may take some; after a while they may not.
    ///
    /// # Panics
    ///
    /// If there can't be `wanted` permits: more than [`MAX_PERMITS`].
    #[inline]
    pub fn acquire_many(&self, wanted: u32) {
        if !self.take(wanted, Heed::Head) {
            self.wait(wanted, None);
        }
    }

    /// Does what [`acquire_many`](Self::acquire_many) does, but gives up when the deadline has
    /// passed; returns whether the caller has the permits. Free permits are taken whatever the
    /// deadline.
    ///
    /// # Panics
    ///
    /// If there can't be `wanted` permits, as for [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn acquire_until(&self, wanted: u32, deadline: Deadline) -> bool {
        self.take(wanted, Heed::Head) || self.wait(wanted, Some(deadline))
    }

    /// Takes `wanted` permits if they are free, ahead of any waiters; never blocks.
    #[inline]
    pub fn try_acquire(&self, wanted: u32) -> bool {
        self.take(wanted, Heed::Nobody)
    }

    /// Gives `more` permits, whichever thread took them; wakes the head of the queue if it sleeps.
    /// Never blocks.
    ///
    /// # Errors
    ///
    /// [`TooManyPermits`]; then none was given.
    #[inline]
    pub fn release(&self, more: u32) -> Result<(), TooManyPermits> {
        // Release: SEM-1; pairs with the acquires of the threads that take them.
        let seen = self.change(Release, |seen| {
            let after = seen.release(more)?.0;
            let keeps = seen.is_overtaken()
                && Patience::<F>::looks::<P>()
                && Patience::<F>::is_due::<P>(seen.name());
            Some(if keeps { after.with_fair() } else { after })
        });
        let Ok(seen) = seen else { return Err(TooManyPermits) };
        if let Some((_, Some(name))) = seen.release(more) {
            // SEM-3: this touches only nodes.
            call::<P, F>(name, false);
        }
        Ok(())
    }

    /// Returns the number of free permits; may be stale at once.
    pub fn permits(&self) -> u32 {
        self.peek().permits()
    }

    /// Returns whether a thread waits in the queue; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        self.tail.name().is_some()
    }

    fn take(&self, wanted: u32, heed: Heed) -> bool {
        // Acquire: SEM-1; pairs with the releases.
        self.change(Acquire, |seen| seen.take(wanted, heed)).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn wait(&self, wanted: u32, deadline: Option<Deadline>) -> bool {
        const { assert!(F::HEAD_SLEEPS) }
        assert!(wanted <= MAX_PERMITS, "a semaphore never has more than `MAX_PERMITS` permits");
        let entry = Entry { semaphore: self, wanted };
        entry.lock_contended(deadline) == Wait::Acquired
    }

    /// Loads the state; the load orders nothing.
    fn peek(&self) -> State {
        State::of(self.state.load(Relaxed), self.first)
    }

    /// Replaces the state by `change` of it; returns the state before. Returns as an error a state
    /// for which `change` gives `None`.
    fn change(
        &self,
        order: Ordering,
        change: impl Fn(State) -> Option<State>,
    ) -> Result<State, State> {
        let mut seen = self.peek();
        loop {
            let new = change(seen).ok_or(seen)?.word(self.first);
            match self.state.compare_exchange(seen.word(self.first), new, order, Relaxed) {
                Ok(_) => return Ok(seen),
                Err(now) => seen = State::of(now, self.first),
            }
        }
    }
}
