//! Acquiring the readers-writer lock for reading with the right to become the writer: one thread at
//! a time, beside plain readers.
//!
//! The upgradable reader is not counted among the readers, so that it waits for a count of 0. While
//! it waits for that (`UPGRADING`) no reader comes in, the head of the queue included: the
//! upgradable reader is nearer to the lock than the head, has its own name in the state, and is
//! woken by the last reader in place of the head. A thread that was kept out meanwhile is woken
//! when the upgradable reader leaves, or gives up.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Deadline, Hint, Parked, Platform};

use super::super::queue::Place;
use super::kind::Upgradable;
use super::spread::{Drained, Patience};
use super::state::{Mark, State};
use super::{RwForm, ShflRwLock};
use crate::nap;
use crate::policy::Policy;
use crate::section;

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// Acquires the lock for reading, with the right to upgrade; blocks until the caller has it.
    pub fn upgradable(&self) {
        if self.enter::<Upgradable>(Self::COMER).is_none() {
            self.wait::<Upgradable>(None);
        }
    }

    /// Does what [`upgradable`](Self::upgradable) does, but gives up when the deadline has passed;
    /// returns whether the caller has the lock. A lock that can be acquired without waiting is
    /// acquired whatever the deadline.
    pub fn upgradable_until(&self, deadline: Deadline) -> bool {
        self.enter::<Upgradable>(Self::COMER).is_some()
            || self.wait::<Upgradable>(Some(deadline)).is_some()
    }

    /// Acquires what [`upgradable`](Self::upgradable) acquires if that is possible without waiting;
    /// never fails on a free lock, never blocks.
    pub fn try_upgradable(&self) -> bool {
        self.enter::<Upgradable>(Self::TRYING).is_some()
    }

    /// Releases what was acquired by [`upgradable`](Self::upgradable).
    ///
    /// # Safety
    ///
    /// The caller owns the lock by [`upgradable`](Self::upgradable).
    pub unsafe fn unlock_upgradable(&self) {
        self.leave(State::release_upgradable);
    }

    /// Waits until all other readers have left, and makes the caller the writer: no other writer
    /// has the lock in between. Arriving readers wait. It blocks for ever if the caller also holds
    /// the lock for reading, or if a reader that is in waits for the caller.
    ///
    /// # Safety
    ///
    /// The caller owns the lock by [`upgradable`](Self::upgradable).
    pub unsafe fn upgrade(&self) {
        self.upgrade_patiently(None);
    }

    /// Does what [`upgrade`](Self::upgrade) does, but gives up when the deadline has passed;
    /// returns whether the caller is the writer. If not, the caller owns the lock as before.
    ///
    /// # Safety
    ///
    /// The same as for [`upgrade`](Self::upgrade).
    pub unsafe fn upgrade_until(&self, deadline: Deadline) -> bool {
        self.upgrade_patiently(Some(deadline))
    }

    fn upgrade_patiently(&self, deadline: Option<Deadline>) -> bool {
        loop {
            let found = self.try_to_upgrade().or_else(|| self.wait_for_readers(deadline));
            let Some(found) = found else { return false };
            match self.drain(found, Patience::Until(deadline)) {
                Drained::Alone => {
                    section::begin::<P>();
                    return true;
                }
                Drained::Busy => return false,
                Drained::Ended => {}
            }
        }
    }

    /// Upgrades if no other reader is in; never blocks.
    ///
    /// # Safety
    ///
    /// The same as for [`upgrade`](Self::upgrade).
    pub unsafe fn try_upgrade(&self) -> bool {
        let upgraded = !self.is_read_by_line()
            && self
                .try_to_upgrade()
                .is_some_and(|found| self.drain(found, Patience::Never) == Drained::Alone);
        section::begin_if::<P>(upgraded)
    }

    /// Gives up the right to upgrade, and makes the caller a plain reader. Never blocks.
    ///
    /// # Safety
    ///
    /// The caller owns the lock by [`upgradable`](Self::upgradable).
    pub unsafe fn downgrade_upgradable(&self) {
        let left = self.leave_from(State::downgrade_upgradable);
        self.came_in(left);
    }

    /// Turns what was acquired for writing into what [`upgradable`](Self::upgradable) acquires,
    /// with no other writer in between; never blocks.
    ///
    /// # Safety
    ///
    /// The caller owns the lock for writing.
    pub unsafe fn downgrade_to_upgradable(&self) {
        section::release::<P>(|| self.let_readers_in(State::downgrade_to_upgradable));
    }

    /// Returns the state in which the caller became the writer, with its mark, as
    /// [`enter`](Self::enter) does. The caller must then wait for the readers of lines; if they do
    /// not leave in time, it is an upgradable reader again.
    fn try_to_upgrade(&self) -> Option<State> {
        let mark = Mark::upgrader(P::epoch());
        let upgrade = |seen: State| (!seen.has_readers()).then(|| seen.upgrade().marked(mark));
        // Acquire: pairs with the release in `unlock_read`.
        self.change(Acquire, upgrade).ok().map(|found| found.with_mark(mark))
    }

    /// Keeps readers out until those that are in have left, or the deadline has passed.
    #[cold]
    #[inline(never)]
    fn wait_for_readers(&self, deadline: Option<Deadline>) -> Option<State> {
        const NAP_NS: u64 = 200_000;
        let me = Place::take(crate::policy::None);
        let name = me.map_or(0, |me: Place<P>| me.id.index() as u16);
        // Release: pairs with the acquire in `wake`: our node's generation comes with its name.
        let _ = self.change(Release, |seen| Some(seen.with_upgrader(name)));
        let upgraded = loop {
            self.spin_for_readers();
            let upgraded = self.try_to_upgrade();
            if upgraded.is_some() {
                break upgraded;
            }
            // RW-2: named from the beginning; readers are in, and the last of them wakes us.
            let parked = match me.filter(|me| !me.is_lost()) {
                Some(me) => P::park(me.node, deadline),
                None => {
                    nap::nap::<P>(NAP_NS);
                    Parked::TimedOut
                }
            };
            if parked == Parked::TimedOut && nap::passed::<P>(deadline) {
                break self.try_to_upgrade();
            }
        };
        if upgraded.is_none() {
            self.leave(State::without_upgrader);
        }
        if let Some(me) = me {
            me.give();
        }
        upgraded
    }

    fn spin_for_readers(&self) {
        let budget = if P::crowded() { Budget::NONE } else { F::HEAD_SPIN };
        P::hint(Hint::SpinBegin);
        // Relaxed: the caller loads it again in any case.
        let _ = self.state.spin_while(Relaxed, budget, |seen| State(seen).has_readers());
        P::hint(Hint::SpinEnd);
    }
}
