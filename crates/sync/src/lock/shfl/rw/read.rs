//! Acquiring and releasing the readers-writer lock for reading.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Deadline, Platform};

use super::kind::{Kind, Read};
use super::row::call_row;
use super::state::{Heed, READER, State};
use super::wake::wake;
use super::{Refused, RwForm, ShflRwLock};
use crate::policy::Policy;

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Acquires the lock for reading; blocks until the caller has it.
    ///
    /// The caller waits behind a waiting writer. So a thread that already holds the lock for
    /// reading may wait for ever, unless the form has [`RwForm::READERS_PASS`].
    ///
    /// # Errors
    ///
    /// [`Refused::TooManyReaders`], at once.
    #[inline]
    pub fn read(&self) -> Result<(), Refused> {
        if self.sit_down(!F::READERS_PASS) {
            return Ok(());
        }
        let found = self.count_in();
        if self.comes_in(found) { Ok(()) } else { self.read_contended(found, Self::COMER, None) }
    }

    /// The part of [`read`](Self::read) before it waits: acquires the lock for reading if nothing
    /// keeps the caller out. For callers that need to know whether they would have to wait, and
    /// then will wait; others use [`try_read`](Self::try_read), which delays no thread if it fails.
    ///
    /// # Errors
    ///
    /// The reason why the lock was not acquired.
    #[inline]
    pub fn read_uncontended(&self) -> Result<(), Refused> {
        if self.sit_down(false) {
            return Ok(());
        }
        let found = self.count_in();
        if self.comes_in(found) { Ok(()) } else { self.settle(found, Self::COMER) }
    }

    /// Does what [`read`](Self::read) does, and never waits if the caller holds the lock for
    /// reading already.
    ///
    /// # Errors
    ///
    /// The same as for [`read`](Self::read).
    #[inline]
    pub fn read_recursive(&self) -> Result<(), Refused> {
        if self.sit_down(false) {
            return Ok(());
        }
        let found = self.count_in();
        if self.comes_in(found) {
            Ok(())
        } else {
            self.read_contended(found, Heed::Recursion, None)
        }
    }

    /// Does what [`read`](Self::read) does, but gives up when the deadline has passed. A lock that
    /// can be acquired without waiting is acquired whatever the deadline.
    ///
    /// # Errors
    ///
    /// [`Refused::Busy`] after the deadline, [`Refused::TooManyReaders`] at once.
    #[inline]
    pub fn read_until(&self, deadline: Deadline) -> Result<(), Refused> {
        if self.sit_down(false) {
            return Ok(());
        }
        let found = self.count_in();
        if self.comes_in(found) {
            Ok(())
        } else {
            self.read_contended(found, Self::COMER, Some(deadline))
        }
    }

    /// Acquires the lock for reading if that is possible without waiting; never fails on a free
    /// lock, never blocks. It fails while readers are in and a writer waits, unless the form has
    /// [`RwForm::READERS_PASS`].
    ///
    /// # Errors
    ///
    /// The reason why the lock was not acquired.
    #[inline]
    pub fn try_read(&self) -> Result<(), Refused> {
        self.try_to_read(Self::TRYING)
    }

    /// Does what [`try_read`](Self::try_read) does, and never fails if the caller holds the lock
    /// for reading already.
    ///
    /// # Errors
    ///
    /// The same as for [`try_read`](Self::try_read).
    #[inline]
    pub fn try_read_recursive(&self) -> Result<(), Refused> {
        self.try_to_read(Heed::Insisting)
    }

    /// Counts the caller in only if it comes in: a failing try never keeps another thread out.
    fn try_to_read(&self, heed: Heed) -> Result<(), Refused> {
        if self.sit_down(false) {
            return Ok(());
        }
        // Acquire: as in `count_in`.
        match self.change(Acquire, |seen| Read::enter(seen, heed)) {
            Ok(found) => {
                self.came_in(found);
                Ok(())
            }
            Err(seen) if seen.is_full() => Err(Refused::TooManyReaders),
            Err(_) if heed.recurs() && self.sit_beside() => Ok(()),
            Err(_) => Err(Refused::Busy),
        }
    }

    /// Releases what was acquired for reading; the last reader wakes a writer that sleeps as the
    /// head of the queue.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for reading.
    #[inline]
    pub unsafe fn unlock_read(&self) {
        self.leave_as_reader();
    }

    /// Leaves; called by a thread that has counted itself in and found the state as `found` (RW-8).
    fn leave_counted(&self, found: State) {
        if found.is_spread() {
            self.leave_state();
        } else {
            self.leave_as_reader();
        }
    }

    /// RW-7: leaves where readers are counted. The count can move at any time where the lock may
    /// spread; where it may not, one is subtracted without a check.
    #[inline]
    fn leave_as_reader(&self) {
        if Self::may_spread() { self.leave_mode() } else { self.leave_state() }
    }

    #[inline]
    fn leave_mode(&self) {
        // Acquire, here and below: the name of the indicator; pairs with the release in `spread`.
        let mut seen = State(self.state.load(Acquire));
        while !seen.is_spread() {
            let left = seen.without_reader();
            // Release: pairs with the acquire of the next writer.
            match self.state.compare_exchange(seen.0, left.0, Release, Acquire) {
                Ok(_) => return self.call_from(seen, left),
                Err(now) => seen = State(now),
            }
        }
        self.leave_line();
    }

    /// RW-3: leaves the state, which certainly counts the caller, and wakes a waiter if one must be
    /// woken.
    #[inline]
    pub(super) fn leave_state(&self) {
        // Release: pairs with the acquire of the next writer.
        let seen = State(self.state.fetch_sub(READER, Release));
        self.call_from(seen, seen.without_reader());
    }

    /// Wakes the waiter that the last reader must wake; `left` is the state that it has left of
    /// `seen`.
    #[inline]
    fn call_from(&self, seen: State, left: State) {
        if let Some(name) = left.called_by_none() {
            call_row::<P, F>(name, seen.is_fair());
        }
    }

    /// Counts the caller in. Returns the state before: unless it was open, the count may be wrong.
    #[inline]
    fn count_in(&self) -> State {
        // Acquire: pairs with the release in `unlock_write`.
        State(self.state.fetch_add(READER, Acquire))
    }

    /// Returns whether a reader that is counted, and found the state as `found`, is in without a
    /// further check.
    #[inline]
    fn comes_in(&self, found: State) -> bool {
        let open = found.is_open();
        if open {
            self.mind_head(found, false);
            if found.is_crowd(F::CROWD) && Self::may_spread() {
                self.crowd(found);
            }
        }
        open
    }

    /// One in eight readers that find a crowd tries to make the lock count it by socket.
    #[inline]
    fn crowd(&self, found: State) {
        if (found.readers() ^ u64::from(F::CROWD)).is_multiple_of(8) {
            self.spread();
        }
    }

    /// Goes on after [`count_in`](Self::count_in) has found the state not to be open.
    #[cold]
    #[inline(never)]
    fn read_contended(
        &self,
        found: State,
        heed: Heed,
        deadline: Option<Deadline>,
    ) -> Result<(), Refused> {
        match self.settle(found, heed) {
            Err(Refused::Busy) if heed.recurs() && self.sit_beside() => return Ok(()),
            Err(Refused::Busy) => {}
            settled => return settled,
        }
        let found = self.wait::<Read>(deadline).ok_or(Refused::Busy)?;
        self.came_in(found);
        Ok(())
    }

    /// Settles the count of a reader that found the state as `found`: the reader is in, or takes
    /// its count back.
    #[cold]
    fn settle(&self, found: State, heed: Heed) -> Result<(), Refused> {
        if found.admits_reader(heed) {
            if let Some(overtaken) = found.with_reader().changed(|_| found.enter_reader()) {
                let counted = found.with_reader().0;
                // Relaxed: the caller is in already. If others have changed the state, it stays as
                // they left it.
                let taken = self.state.compare_exchange(counted, overtaken.0, Relaxed, Relaxed);
                // RW-4: the head may have come and asked again, which leaves the same state.
                if taken.is_ok() {
                    wake::<P>(found.name());
                }
            }
            self.mind_head(found, false);
            self.came_in(found);
            return Ok(());
        }
        // Acquire, here and below: as in `count_in`.
        let mut seen = State(self.state.load(Acquire));
        loop {
            // RW-1: if the writer has left, the count is a reader's. RW-4: it may hide that the
            // last of the others has left. A writer that waits for that was not called; we leave
            // for its sake.
            if !found.is_spread() && seen.is_spread() {
                // RW-9.
                return Ok(());
            }
            let before = seen.without_reader();
            if before.admits_reader(heed) && !before.has_waiting_writer() {
                self.came_in(found);
                return Ok(());
            }
            if !seen.has_writer() {
                self.leave_counted(found);
                let full = before.is_full();
                return Err(if full { Refused::TooManyReaders } else { Refused::Busy });
            }
            // Relaxed: the caller has not been in.
            match self.state.compare_exchange(seen.0, before.0, Relaxed, Acquire) {
                Ok(_) => return Err(Refused::Busy),
                Err(now) => seen = State(now),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use antiphon_linux::Linux;
    use antiphon_platform::Clock;

    use super::super::super::Standard;
    use super::super::form::Recursive;
    use super::super::state::MAX_READERS;
    use super::*;

    fn check<F: RwForm>() {
        let lock = ShflRwLock::<Linux, crate::policy::None, F>::NEW;
        let full = u64::from(MAX_READERS) * READER;
        lock.state.store(full - READER, Relaxed);
        assert_eq!(lock.read(), Ok(()), "the last that there is room for");
        let soon = Deadline { clock: Clock::Monotonic, ns: u64::MAX };
        assert_eq!(lock.read(), Err(Refused::TooManyReaders));
        assert_eq!(lock.read_recursive(), Err(Refused::TooManyReaders));
        assert_eq!(lock.read_until(soon), Err(Refused::TooManyReaders));
        assert_eq!(lock.try_read(), Err(Refused::TooManyReaders));
        assert_eq!(lock.state.load(Relaxed), full, "who is refused leaves no trace");
        // SAFETY: acquired above, in a way.
        unsafe { lock.unlock_read() };
        assert_eq!(lock.try_read(), Ok(()));
    }

    #[test]
    fn the_reader_that_is_one_too_many_is_told_so() {
        check::<Standard>();
        check::<Recursive>();
    }
}
