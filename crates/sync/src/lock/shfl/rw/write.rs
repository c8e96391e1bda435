//! Acquiring and releasing the readers-writer lock for writing.
//!
//! A writer tells its critical section, as the owner of a mutex does (`section.rs`); readers tell
//! none, as a preempted reader keeps no other reader waiting.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Deadline, Platform};

use super::super::turn::Wait;
use super::kind::Write;
use super::spread::{Drained, Patience};
use super::state::{Heed, State, WRITER};
use super::{RwForm, ShflRwLock};
use crate::policy::Policy;
use crate::section;

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Acquires the lock for writing; blocks until the caller has it.
    #[inline]
    pub fn write(&self) {
        // Before the exchange, which hides the load.
        if P::heeds_sections() {
            return self.write_told();
        }
        if !self.write_uncontended() {
            self.write_contended(None);
        }
    }

    /// [`write`](Self::write), told to the platform.
    #[cold]
    #[inline(never)]
    fn write_told(&self) {
        let wait = || {
            self.write_contended(None);
        };
        section::acquire::<P>(|| self.write_uncontended(), wait);
    }

    /// The part of [`write`](Self::write) without contention: acquires the lock if no thread is in
    /// and none waits as the head. Tells no section.
    #[inline]
    pub fn write_uncontended(&self) -> bool {
        // Acquire: pairs with the releases in `unlock_read` and `unlock_write`.
        self.state.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }

    /// The part of [`write`](Self::write) before it waits: acquires the lock if no thread is in and
    /// it is not kept for the head. For callers that need to know whether they would have to wait.
    /// Tells no section.
    #[inline]
    pub fn write_at_once(&self) -> bool {
        self.write_uncontended() || self.write_free()
    }

    /// Does what [`write_at_once`](Self::write_at_once) does, and tells the section.
    pub fn write_at_once_told(&self) -> bool {
        section::attempt::<P>(|| self.write_at_once())
    }

    /// Checks a second time: the head may be on its way, and other threads may overtake it
    /// (`Patience`).
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
        let acquired = self.write_uncontended() || self.write_contended(Some(deadline));
        section::begin_if::<P>(acquired)
    }

    /// Acquires the lock for writing if it is free, ahead of any waiters; never fails on a free
    /// lock, never blocks.
    #[inline]
    pub fn try_write(&self) -> bool {
        section::begin_if::<P>(self.try_write_untold())
    }

    /// [`try_write`](Self::try_write) without a section.
    #[inline]
    pub(super) fn try_write_untold(&self) -> bool {
        self.write_uncontended() || self.try_to_write()
    }

    /// Releases what was acquired for writing; wakes the head of the queue if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    #[inline]
    pub unsafe fn unlock_write(&self) {
        // SAFETY: the caller's promise.
        if unsafe { self.unlock_write_uncontended() } {
            return section::is_over::<P>();
        }
        self.unlock_contended();
    }

    /// The part of [`unlock_write`](Self::unlock_write) without contention: releases the lock if no
    /// other thread has asked for anything. Returns whether it did. Tells no section.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    #[inline]
    pub unsafe fn unlock_write_uncontended(&self) -> bool {
        // Release: pairs with the acquires of the next owners.
        self.state.compare_exchange(WRITER, 0, Release, Relaxed).is_ok()
    }

    #[cold]
    #[inline(never)]
    fn unlock_contended(&self) {
        // A wake is a system call: it is none of the section's.
        section::release::<P>(|| self.release_writer());
    }

    /// Turns what was acquired for writing into what was acquired for reading, with no writer in
    /// between; never blocks. A reader that waits as the head comes in too.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade(&self) {
        section::release::<P>(|| {
            self.end_turn();
            let left = self.leave_from(State::downgrade);
            self.came_in(left);
        });
    }

    #[cold]
    #[inline(never)]
    fn write_contended(&self, deadline: Option<Deadline>) -> bool {
        if deadline.is_none() && self.write_in_turn() {
            return true;
        }
        let found = self.enter::<Write>(Heed::All);
        match self.write_alone(found, deadline, deadline.is_none()) {
            // HEIR-8: once.
            Err(Wait::Elsewhere) => {
                self.write_in_turn()
                    || self.write_alone(self.enter::<Write>(Heed::All), None, false).is_ok()
            }
            wait => wait.is_ok(),
        }
    }

    /// Waits for readers of lines, if the caller has come in and `found` the state so; otherwise
    /// waits in the queue, and `moves` from there if it can. Returns as an error how the wait has
    /// ended otherwise.
    pub(super) fn write_alone(
        &self,
        mut found: Option<State>,
        deadline: Option<Deadline>,
        moves: bool,
    ) -> Result<(), Wait> {
        // As in `write_free`.
        loop {
            let came = match found {
                Some(found) => found,
                None => self.wait_or_move::<Write>(deadline, moves)?,
            };
            match self.drain(came, Patience::Until(deadline)) {
                Drained::Alone => return Ok(()),
                Drained::Busy => return Err(Wait::TimedOut),
                Drained::Ended => found = self.enter::<Write>(Heed::All),
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn try_to_write(&self) -> bool {
        // A failing try closes no lines.
        !self.is_read_by_line()
            && self
                .enter::<Write>(Heed::Trying)
                .is_some_and(|found| self.drain(found, Patience::Never) == Drained::Alone)
    }
}

super::super::super::impl_lock!(
    unsafe writer: [P: Platform, Q: Policy, F: RwForm] ShflRwLock<P, Q, F>
);
