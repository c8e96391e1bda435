//! Writing: alone.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use super::kind::Write;
use super::spread::{Drained, Patience};
use super::state::{Heed, State, WRITER};
use super::{RwForm, ShflRwLock};
use crate::policy::Policy;

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Acquires the lock for writing; blocks until the caller has it.
    #[inline]
    pub fn write(&self) {
        if !self.write_uncontended() {
            self.write_contended(None);
        }
    }

    /// The part of [`write`](Self::write) without contention: acquires the lock if no thread is in
    /// and none waits as the head.
    #[inline]
    pub fn write_uncontended(&self) -> bool {
        // Acquire: pairs with the releases in `unlock_read` and `unlock_write`.
        self.state.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }

    /// The part of [`write`](Self::write) before it waits: acquires the lock if no thread is in and
    /// it is not kept for the head. For callers that want to know when they would have waited.
    #[inline]
    pub fn write_at_once(&self) -> bool {
        self.write_uncontended() || self.write_free()
    }

    /// Looks a second time. The head may be on its way, and others overtake it (`Patience`).
    #[cold]
    #[inline(never)]
    fn write_free(&self) -> bool {
        self.enter::<Write>(Heed::All)
            .is_some_and(|found| self.drain(found, Patience::Never) == Drained::Alone)
    }

    /// Acquires the lock for writing, or gives up when the deadline has passed; returns whether the
    /// caller has it. A free lock is acquired whatever the deadline.
    #[inline]
    pub fn write_until(&self, deadline: Deadline) -> bool {
        self.write_uncontended() || self.write_contended(Some(deadline))
    }

    /// Acquires the lock for writing if it is free, ahead of any waiters; never fails on a free
    /// lock, never blocks.
    #[inline]
    pub fn try_write(&self) -> bool {
        self.write_uncontended() || self.try_to_write()
    }

    /// Releases what was acquired for writing; wakes the head of the queue if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        // Release: pairs with the acquires of the next owners.
        if self.state.compare_exchange(WRITER, 0, Release, Relaxed).is_err() {
            self.release_writer();
        }
    }

    /// Turns what was acquired for writing into what was acquired for reading, with no writer in
    /// between; never blocks. A reader that waits as the head comes in too.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade(&self) {
        self.end_turn();
        let left = self.leave_from(State::downgrade);
        self.came_in(left);
    }

    #[cold]
    #[inline(never)]
    fn write_contended(&self, deadline: Option<Deadline>) -> bool {
        if deadline.is_none() && self.write_in_turn() {
            return true;
        }
        self.write_alone(deadline)
    }

    /// Comes in through the state, and waits for readers of lines.
    pub(super) fn write_alone(&self, deadline: Option<Deadline>) -> bool {
        // As in `write_free`.
        loop {
            let found = self.enter::<Write>(Heed::All).or_else(|| self.wait::<Write>(deadline));
            let Some(found) = found else { return false };
            match self.drain(found, Patience::Until(deadline)) {
                Drained::Alone => return true,
                Drained::Busy => return false,
                Drained::Ended => {}
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn try_to_write(&self) -> bool {
        // A try that is in vain closes no lines.
        !self.is_read_by_line()
            && self
                .enter::<Write>(Heed::Trying)
                .is_some_and(|found| self.drain(found, Patience::Never) == Drained::Alone)
    }
}

super::super::super::impl_lock!(
    unsafe writer: [P: Platform, Q: Policy, F: RwForm] ShflRwLock<P, Q, F>
);
