//! The semaphore: a number of permits, 16 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | the permits, and the head's wishes: `state.rs` |
//! | 8–11 | `tail` | name of the last waiter, 0 if no thread waits |
//! | 12–15 | `first` | how many permits there were at first |
//!
//! Waiters stand in the mutex's queue (`contended.rs`): its sleep, its timeouts, its fairness. The
//! difference is that a thread that takes a permit need not give it back, so no waiter is left
//! asleep if there are permits for it.
//!
//! - SEM-1: there are never more permits out than there were; what was done before a release
//!   happens before what the thread does that takes the permit.
//! - SEM-2: a sleeping head is named in `state` with `WAKE` set, or has a wake coming, or there are
//!   fewer permits than it wants: `WAKE` is set only by an exchange that finds fewer than that, and
//!   the next release calls the head. The head that has had its permits does so for the waiter
//!   behind it, or wakes that waiter.
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
/// Waiters are served in the order in which they came. An arriving waiter takes a permit ahead of
/// them if there is one. A waiter that was called is overtaken in this way for
/// [`Form::PATIENCE_NS`] at least, and then no more: the waiter itself ends that if it runs, and if
/// it does not, a thread that gives permits does.
#[repr(C, align(8))]
pub struct Semaphore<P: Platform, Q: Policy = policy::None, F: Form = Standard> {
    state: P::U64,
    tail: TailId<P>,
    first: u32,
    marker: PhantomData<(Q, F)>,
}

/// There would be more than [`MAX_PERMITS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPermits;

impl fmt::Display for TooManyPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a semaphore has no room for more than {MAX_PERMITS} permits")
    }
}

impl core::error::Error for TooManyPermits {}

impl<P: Platform, Q: Policy, F: Form> Semaphore<P, Q, F> {
    /// A semaphore that has this many `permits`. All zero: it has none.
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

    /// The part of [`acquire`](Self::acquire) without contention: takes a permit if there is one
    /// and none is kept for a waiter. For callers that want to know when they would have waited.
    #[inline]
    pub fn acquire_uncontended(&self) -> bool {
        self.take(1, Heed::Head)
    }

    /// Takes `wanted` permits together; blocks until the caller has them. While they gather,
    /// arriving waiters that want less may take some; after a while they may not.
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
    /// passed; returns whether the caller has the permits. Permits that are there are taken
    /// whatever the deadline.
    ///
    /// # Panics
    ///
    /// If there can't be `wanted` permits, as for [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn acquire_until(&self, wanted: u32, deadline: Deadline) -> bool {
        self.take(wanted, Heed::Head) || self.wait(wanted, Some(deadline))
    }

    /// Takes `wanted` permits if they are there, ahead of any waiters; never blocks.
    #[inline]
    pub fn try_acquire(&self, wanted: u32) -> bool {
        self.take(wanted, Heed::Nobody)
    }

    /// Gives `more` permits, whichever thread had them; wakes the head of the queue if it sleeps.
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
            // SEM-3: nodes only.
            call::<P, F>(name, false);
        }
        Ok(())
    }

    /// How many permits there are; may be stale at once.
    pub fn permits(&self) -> u32 {
        self.peek().permits()
    }

    /// Whether a thread waits in the queue; may be stale at once.
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

    /// The state, by a load that orders nothing.
    fn peek(&self) -> State {
        State::of(self.state.load(Relaxed), self.first)
    }

    /// Replaces the state by `change` of it; returns the state before. As an error, a state that is
    /// not to be changed.
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
