//! The ShflLock readers-writer lock: 16 bytes, and every waiter may sleep.
//!
//! | byte | field | meaning |
//! |---|---|---|
//! | 0–7 | `state` | who is in, and what the head of the queue has to say: `state.rs` |
//! | 8–11 | `tail` | name of the last waiter, 0 if nobody waits |
//! | 12 | `policy` | the policy, where it is chosen at run time ([`Chosen`]); else zero |
//! | 13 | `rest` | until when readers are not counted by socket (`spread.rs`); 0 for now |
//! | 14–15 | `lines` | name of the reader indicator where they are; 0 if there is none |
//!
//! Source: `000_…`, "Readers-writer SHFLLOCK": one counter encodes readers and the writer, and both
//! kinds wait in one list. The list is the mutex's (`contended.rs`): its queue, its sleep, its
//! timeouts, fairness and sorting. `README.md` beside this file has the protocol and its reasons.
//!
//! ```text
//!              read                     write                downgrade
//!   readers ◄────────── 0 ◄───────────────────────► WRITER ──────────────► one reader
//!   1, 2, … ──────────►     unlock_write
//!            unlock_read
//! ```
//!
//! - RW-1: while `WRITER` is set, nobody else is in. Readers may be counted that are not: each
//!   takes its count back while `WRITER` is set, or is in when it is not.
//! - RW-2: a sleeping head is named in `state` with `WAKE` set, or has a wake coming: `WAKE` is set
//!   only by an exchange that finds somebody in who keeps the head out, and who leaves as the last
//!   of those wakes it.
//! - RW-3: nothing of the lock is touched after the instruction that releases it; that instruction
//!   returns whom to wake.
//! - RW-4: while a writer waits as the head and readers are in, no other reader comes in, unless by
//!   RW-5. Who takes away a head's wish that it be so wakes that head, which asks anew.
//! - RW-5: who holds the lock for reading can have it again, by [`ShflRwLock::read_recursive`]; or
//!   by any read, where the form says so ([`RwForm::READERS_PASS`]).
//! - RW-6: a called head that has no CPU keeps nobody from one: who overtakes it for long wakes a
//!   reader behind it, which may come in as any comer may; or keeps the lock for the head, if
//!   there is none and the head is due.

mod form;
mod group;
mod head;
mod indicator;
mod kind;
mod per_socket;
mod read;
mod spread;
mod state;
mod upgrade;
mod write;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::fair::Patience;
use super::mutex::Standard;
use super::queue::TailId;
use super::wake::{self, call, wake_behind};
use crate::policy::{Chosen, Policy};
pub use form::{Central, Recursive, RwForm};
pub use group::{GroupReaders, GroupWriters};
pub use per_socket::{PerSocket, Seat};
pub use state::MAX_READERS;
use state::State;

/// A NUMA-aware blocking readers-writer lock, 16 bytes.
///
/// Writers are preferred, in order of their coming: while one waits, readers that come wait behind
/// it. In a form with [`RwForm::READERS_PASS`] they don't.
#[repr(C, align(8))]
pub struct ShflRwLock<P: Platform, Q: Policy = Chosen, F: RwForm = Standard> {
    state: P::U64,
    tail: TailId<P>,
    policy: P::U8,
    rest: P::U8,
    lines: P::U16,
    marker: PhantomData<(Q, F)>,
}

/// Why a lock was not had for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It was not to be had in time.
    Busy,
    /// There are [`MAX_READERS`] already.
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

    /// As [`ShflMutex::set_policy`](crate::lock::ShflMutex::set_policy).
    pub fn set_policy(&self, policy: Q) {
        // Relaxed: it decides about order only, and may be seen at any time.
        self.policy.store(policy.byte(), Relaxed);
    }

    /// The policy that waiters are sorted by; may be stale at once.
    pub fn policy(&self) -> Q {
        // Relaxed: as above.
        Q::of(|| self.policy.load(Relaxed))
    }

    /// Whether anybody is in, to read or to write; may be stale at once.
    pub fn is_locked(&self) -> bool {
        !self.peek().is_free() || self.is_read_by_line()
    }

    /// Whether a writer is in, and has nobody to wait for; may be stale at once.
    pub fn is_locked_by_writer(&self) -> bool {
        self.peek().is_written()
    }

    /// Whether anybody waits in the queue; may be stale at once.
    pub fn has_waiters(&self) -> bool {
        self.tail.name().is_some()
    }

    /// The name of who came last of those that wait, whatever process wrote it; `None` if nobody
    /// waits. May be stale at once.
    pub fn last_waiter(&self) -> Option<WaiterId> {
        self.tail.name()
    }

    /// The same lock in another form, for callers that learn only at run time which form it has: a
    /// form is how callers behave, and nothing of it stands in the lock. All callers of a lock use
    /// one.
    pub fn in_form<G: RwForm>(&self) -> &ShflRwLock<P, Q, G> {
        // SAFETY: laid out in the order of its fields, of which the form is in none but the marker.
        unsafe { &*core::ptr::from_ref(self).cast() }
    }

    /// The state, which orders nothing.
    fn peek(&self) -> State {
        State(self.state.load(Relaxed))
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
            let new = change(seen).ok_or(seen)?;
            match self.state.compare_exchange(seen.0, new.0, order, Relaxed) {
                Ok(_) => return Ok(seen),
                Err(now) => seen = State(now),
            }
        }
    }

    /// Leaves, or gives up a part of what the caller has, by one exchange; then wakes whom the
    /// state has named (RW-3).
    fn leave(&self, leave: impl Fn(State) -> (State, Option<u16>)) {
        let _ = self.leave_from(leave);
    }

    /// As [`leave`](Self::leave); returns the state that it has left.
    #[cold]
    #[inline(never)]
    fn leave_from(&self, leave: impl Fn(State) -> (State, Option<u16>)) -> State {
        // Release: pairs with the acquires of those who come in next.
        let (Ok(seen) | Err(seen)) = self.change(Release, |seen| Some(leave(seen).0));
        if let (_, Some(name)) = leave(seen) {
            call::<P, F>(name, seen.is_fair());
        }
        seen
    }

    /// As somebody who has come in and found the state so: minds a head that was called and does
    /// not come, since it may wait for the caller's CPU.
    #[inline]
    fn mind_head(&self, found: State, writes: bool) {
        if found.is_overtaken() && Patience::<F>::looks::<P>() {
            self.mind_late_head(found, writes);
        }
    }

    /// Who sleeps behind a head that is late has no turn before it, though CPUs may be idle: a
    /// reader there comes in beside the caller, as comers do. If there is none, or the caller
    /// writes, the lock is kept for a head that is due.
    #[cold]
    #[inline(never)]
    fn mind_late_head(&self, found: State, writes: bool) {
        let Some(head) = Patience::<F>::late::<P>(found.name()) else { return };
        if (writes || !wake_behind(head)) && Patience::<F>::keeps_for(head) {
            // Relaxed: decides who is next, and orders nothing. Another head is not due.
            let _ = self.change(Relaxed, |seen| {
                let same = seen.is_overtaken() && seen.name() == found.name();
                same.then(|| seen.with_fair())
            });
        }
    }
}
