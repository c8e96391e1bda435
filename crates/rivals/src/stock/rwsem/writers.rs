//! The slow path of writers: they spin in line, steal the lock, or sleep.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, AtomicInteger, Budget, Clock, Platform, ThreadId};

use super::super::list::Locked;
use super::super::osq::{PIECE_NS, may_spin};
use super::{HANDOFF, LinuxRwSem, READERS, WAITERS, WRITE, WRITER};
use crate::classic::node::Node;

/// Number of times that a writer checks again, `PIECE_NS` apart, while readers have the lock.
const LOOKS_AT_READERS: u32 = 5;

impl<P: Platform, const PATIENCE_NS: u64> LinuxRwSem<P, PATIENCE_NS> {
    #[cold]
    pub(super) fn write_contended(&self) {
        if self.spin_in_line() {
            return;
        }
        let Some(me) = Node::<P>::take_or(|| self.steal()) else { return };
        let begun = P::now(Clock::Monotonic);
        self.sleepers.with(|list| self.push(list, &me, WRITE));
        while !self.sleepers.with(|list| self.take_as_first(list, &me, begun)) {
            // The reason for the return does not matter: the loop checks the word.
            let _ = P::park(me.waiter, None);
        }
        me.give();
    }

    /// Takes a free lock, ahead of the sleepers, unless the first of them has asked for it.
    fn steal(&self) -> bool {
        let mut seen = self.count.load(Relaxed);
        while seen & (WRITER | HANDOFF | READERS) == 0 {
            // Acquire: as in `try_write`.
            match self.count.compare_exchange(seen, seen | WRITER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    fn spin_in_line(&self) -> bool {
        if !may_spin::<P>() {
            return false;
        }
        let Some(turn) = self.spinners.enter() else { return false };
        let had = self.spin();
        self.spinners.leave(turn);
        had
    }

    /// Spins while the writer runs, and briefly while readers are in; returns whether the caller
    /// has the lock.
    fn spin(&self) -> bool {
        let mut looks = 0;
        loop {
            if self.steal() {
                return true;
            }
            let seen = self.count.load(Relaxed);
            let owner = self.owner.load(Relaxed);
            let runs = owner == 0 || P::runs(ThreadId(owner));
            looks = if seen & READERS == 0 { 0 } else { looks + 1 };
            if !may_spin::<P>() || !runs || seen & HANDOFF != 0 || looks > LOOKS_AT_READERS {
                return false;
            }
            // The result does not matter: the loop checks the word again.
            let _ = self.count.spin_while(Relaxed, Budget::ns(PIECE_NS), |now| now == seen);
        }
    }

    /// Takes the lock as the first on the list, and leaves the list; asks for the hand-off if the
    /// caller has waited for `PATIENCE_NS`.
    fn take_as_first(&self, list: &Locked<'_, P>, me: &Node<P>, begun: u64) -> bool {
        if !list.is_first(me) {
            return false;
        }
        let next = me.waiter.next.load(Relaxed);
        let left = if next == 0 { 0 } else { WAITERS };
        let mut seen = self.count.load(Relaxed);
        while seen & (WRITER | READERS) == 0 {
            // Acquire: as in `try_write`. It clears HANDOFF, which was ours.
            match self.count.compare_exchange(seen, WRITER | left, Acquire, Relaxed) {
                Ok(_) => {
                    list.begin_at(next);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
        if P::now(Clock::Monotonic).saturating_sub(begun) >= PATIENCE_NS && seen & HANDOFF == 0 {
            self.count.fetch_or(HANDOFF, Relaxed);
        }
        false
    }
}
