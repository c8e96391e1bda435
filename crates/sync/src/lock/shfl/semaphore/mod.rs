//! The semaphore: so many permits, 16 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | the permits, and what the head of the queue has to say: `state.rs` |
//! | 8–11 | `tail` | name of the last waiter, 0 if nobody waits |
//! | 12–15 | `first` | how many permits there were at first |
//!
//! Those who wait stand in the mutex's queue (`contended.rs`): its sleep, its timeouts, its
//! fairness. What differs is that who takes a permit need not give it back, so nobody leaves a
//! waiter asleep for whom there are permits.
//!
//! - SEM-1: there are never more permits out than there were; what was done before a release
//!   happens before what the one does who takes the permit.
//! - SEM-2: a sleeping head is named in `state` with `WAKE` set, or has a wake coming, or there is
//!   less than it wants: `WAKE` is set only by an exchange that finds less than that, and the next
//!   release calls it. The head that has had its permits does so for the one behind it, or wakes
//!   that.
//! - SEM-3: nothing of the semaphore is touched after the exchange that releases; it returns whom
//!   to wake. So who had the last permit may destroy it.

mod head;
mod state;

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use super::contended::Contended;
use super::fair::Patience;
use super::mutex::{Form, Standard};
use super::queue::TailId;
use super::turn::Wait;
use super::wake::call;
use crate::policy::{self, Policy};
use head::Entry;
pub use state::MAX_PERMITS;
use state::{Heed, State};

/// A counting semaphore, 16 bytes.
///
/// Waiters are served in the order in which they came. A comer takes a permit ahead of them if
/// there is one; a waiter that was called is overtaken so for [`Form::PATIENCE_NS`] at least, and
/// then no more: by itself if it runs, and if it does not, by who gives permits.
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
    /// A semaphore that has so many permits. All zero: it has none.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`].
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        assert!(permits <= MAX_PERMITS, "too many permits");
        Self { state: P::U64::ZERO, tail: TailId::NEW, first: permits, marker: PhantomData }
    }

    /// Takes a permit; blocks until it is had.
    #[inline]
    pub fn acquire(&self) {
        self.acquire_many(1);
    }

    /// What [`acquire`](Self::acquire) does without contention: takes a permit if there is one and
    /// none is kept for a waiter. For callers that want to know when they would have waited.
    #[inline]
    pub fn acquire_uncontended(&self) -> bool {
        self.take(1, Heed::Head)
    }

    /// Takes `wanted` permits together; blocks until they are had. While they gather, comers that
    /// want less may take some; after a while they may not.
    ///
    /// # Panics
    ///
    /// If there can't be so many: more than [`MAX_PERMITS`].
    #[inline]
    pub fn acquire_many(&self, wanted: u32) {
        if !self.take(wanted, Heed::Head) {
            self.wait(wanted, None);
        }
    }

    /// As [`acquire_many`](Self::acquire_many), but gives up when the deadline has passed; says
    /// whether they were had. What is there is had whatever the deadline.
    ///
    /// # Panics
    ///
    /// As [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn acquire_until(&self, wanted: u32, deadline: Deadline) -> bool {
        self.take(wanted, Heed::Head) || self.wait(wanted, Some(deadline))
    }

    /// Takes `wanted` permits if they are there, ahead of any waiters; never blocks.
    #[inline]
    pub fn try_acquire(&self, wanted: u32) -> bool {
        self.take(wanted, Heed::Nobody)
    }

    /// Gives `more` permits, whoever had them; wakes the head of the queue if it sleeps. Never
    /// blocks.
    ///
    /// # Errors
    ///
    /// [`TooManyPermits`]; then none was given.
    #[inline]
    pub fn release(&self, more: u32) -> Result<(), TooManyPermits> {
        // Release: SEM-1; pairs with the acquires of those who take them.
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

    /// How many permits are there; may be stale at once.
    pub fn permits(&self) -> u32 {
        self.peek().permits()
    }

    /// Whether anybody waits in the queue; may be stale at once.
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
        assert!(wanted <= MAX_PERMITS, "so many permits can't be had");
        let entry = Entry { semaphore: self, wanted };
        entry.lock_contended(deadline) == Wait::Acquired
    }

    /// The state, which orders nothing.
    fn peek(&self) -> State {
        State::of(self.state.load(Relaxed), self.first)
    }

    /// Puts `change` of the state in its place: returns what it was before; or, as an error, a
    /// state that is not to be changed.
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
