//! The ShflLock readers-writer lock: 16 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | the readers and writers that are in, and the head's requests: `state.rs` |
//! | 8–11 | `tail` | name of the last waiter, 0 if no thread waits |
//! | 12 | `policy` | the policy, where it is chosen at run time ([`Chosen`]); else zero |
//! | 13 | `rest` | until when readers are not counted by socket (`spread.rs`); 0: now they may be |
//! | 14–15 | `lines` | name of the reader indicator where they are; 0: no indicator |
//!
//! Source: `000_…`, "Readers-writer SHFLLOCK": one counter encodes readers and the writer, and both
//! kinds wait in one list. The list, with its sleep, timeouts, fairness and sorting, is the mutex's
//! (`contended.rs`). `README.md` beside this file describes the protocol and its reasons.
//!
//! ```text
//!              read                     write                downgrade
//!   readers ◄────────── 0 ◄───────────────────────► WRITER ──────────────► one reader
//!   1, 2, … ──────────►     unlock_write
//!            unlock_read
//! ```
//!
//! - RW-1: while `WRITER` is set, no other thread is in. Readers may be counted that are not in:
//!   such a reader takes its count back while `WRITER` is set, or is in once it is not.
//! - RW-2: a sleeping head is named in `state` with `WAKE` set, or has a wake coming: `WAKE` is set
//!   only by an exchange that finds a thread in that keeps the head out, and the last of these
//!   threads to leave wakes the head.
//! - RW-3: nothing of the lock is touched after the instruction that releases it; that instruction
//!   returns the name of the waiter to wake.
//! - RW-4: while a writer waits as the head and readers are in, no other reader comes in, except by
//!   RW-5. A thread that removes a head's request for this wakes that head, which asks again.
//! - RW-5: a thread that holds the lock for reading can acquire it for reading again, by
//!   [`ShflRwLock::read_recursive`]; or by any read, where the form allows it
//!   ([`RwForm::READERS_PASS`]).
//! - RW-6: a called head that has no CPU does not keep waiters that could have one asleep: a thread
//!   that overtakes the head for long wakes a reader behind it, which may come in as any arriving
//!   reader may; or, without such a reader, keeps the lock for the head if the head is due.

mod asleep;
mod crowd;
mod form;
mod group;
mod head;
mod indicator;
mod kind;
mod per_socket;
mod read;
mod row;
mod spread;
mod state;
mod upgrade;
mod write;
mod writers;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::fair::Patience;
use super::form::Standard;
use super::queue::{Place, TailId};
use super::wake::{self, wake_behind};
use crate::policy::{Chosen, Policy};
pub use form::{Central, Recursive, RwForm};
pub use group::{GroupReaders, GroupWriters};
pub use per_socket::{PerSocket, Seat};
use row::call_row;
pub use state::MAX_READERS;
use state::State;

/// A NUMA-aware blocking readers-writer lock, 16 bytes.
///
/// Writers are preferred, in the order in which they came: while one waits, arriving readers wait
/// behind it. In a form with [`RwForm::READERS_PASS`] they do not wait.
#[repr(C, align(8))]
pub struct ShflRwLock<P: Platform, Q: Policy = Chosen, F: RwForm = Standard> {
    state: P::U64,
    tail: TailId<P>,
    policy: P::U8,
    rest: P::U8,
    lines: P::U16,
    marker: PhantomData<(Q, F)>,
}

/// Why a lock was not acquired for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The lock could not be acquired in time.
    Busy,
    /// There are [`MAX_READERS`] readers already.
    TooManyReaders,
}

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// A free lock.
    pub const NEW: Self = Self {
        state: P::U64::ZERO,
        tail: TailId::NEW,
        policy: P::U8::ZERO,
        rest: P::U8::ZERO,
        lines: P::U16::ZERO,
        marker: PhantomData,
    };

    /// Sets the policy, as [`ShflMutex::set_policy`](crate::lock::ShflMutex::set_policy) does.
    pub fn set_policy(&self, policy: Q) {
        // Relaxed: it decides about order only, and may be seen at any time.
        self.policy.store(policy.byte(), Relaxed);
    }

    /// Returns the policy that waiters are sorted by; may be stale at once.
    pub fn policy(&self) -> Q {
        // Relaxed: the policy decides about order only.
        Q::of(|| self.policy.load(Relaxed))
    }

    /// Returns whether a reader or writer is in; may be stale at once.
    pub fn is_locked(&self) -> bool {
        !self.peek().is_free() || self.is_read_by_line()
    }

    /// Returns whether a writer is in that waits for no readers; may be stale at once.
    pub fn is_locked_by_writer(&self) -> bool {
        self.peek().is_written()
    }

    /// Returns whether a thread waits in the queue; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        self.tail.name().is_some()
    }

    /// Returns the name of the last waiter of the queue, whichever process wrote it; `None` if no
    /// thread waits. May be stale at once.
    pub fn last_waiter(&self) -> Option<WaiterId> {
        self.tail.name()
    }

    /// Returns the same lock in another form, for callers that learn the form only at run time: a
    /// form determines how callers behave, and no part of it is stored in the lock. All callers of
    /// a lock must use one form.
    pub fn in_form<G: RwForm>(&self) -> &ShflRwLock<P, Q, G> {
        // SAFETY: the type is `repr(C)`, and only the marker, which has no size, names the form.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// Loads the state; the load orders nothing.
    fn peek(&self) -> State {
        State(self.state.load(Relaxed))
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
            let new = change(seen).ok_or(seen)?;
            match self.state.compare_exchange(seen.0, new.0, order, Relaxed) {
                Ok(_) => return Ok(seen),
                Err(now) => seen = State(now),
            }
        }
    }

    /// Leaves, or gives up a part of what the caller has, by one exchange; then wakes the waiter
    /// that the state has named (RW-3).
    fn leave(&self, leave: impl Fn(State) -> (State, Option<u16>)) {
        let _ = self.leave_from(leave);
    }

    /// Does what [`leave`](Self::leave) does; returns the state that the caller has left.
    #[cold]
    #[inline(never)]
    fn leave_from(&self, leave: impl Fn(State) -> (State, Option<u16>)) -> State {
        // Release: pairs with the acquires of the threads that come in next.
        let (Ok(seen) | Err(seen)) = self.change(Release, |seen| Some(leave(seen).0));
        if let (_, Some(name)) = leave(seen) {
            call_row::<P, F>(name, seen.is_fair());
        }
        seen
    }

    /// Called by a thread that has come in and found the state as `found`: checks for a head that
    /// was called and does not come, because the head may wait for the caller's CPU.
    #[inline]
    fn mind_head(&self, found: State, writes: bool) {
        if found.is_overtaken() && Patience::<F>::looks::<P>() {
            self.mind_late_head(found, writes);
        }
    }

    /// A waiter that sleeps behind a late head has no turn before the head, even if CPUs are idle.
    /// So a reader there is woken and comes in beside the caller, as arriving readers do. Without
    /// such a reader, or if the caller writes, the lock is kept for a head that is due.
    #[cold]
    #[inline(never)]
    fn mind_late_head(&self, found: State, writes: bool) {
        if writes && let Some(head) = Place::at_index(found.name().into()) {
            self.shut_if_crowded(found, head);
        }
        let Some(head) = Patience::<F>::late::<P>(found.name()) else { return };
        if (writes || !wake_behind(head)) && Patience::<F>::keeps_for(head) {
            // Relaxed: decides which waiter is next, and orders nothing. Another head is not due.
            let _ = self.change(Relaxed, |seen| {
                let same = seen.is_overtaken() && seen.name() == found.name();
                same.then(|| seen.with_fair())
            });
        }
    }
}
