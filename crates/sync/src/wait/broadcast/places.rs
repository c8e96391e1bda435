//! Threads that sleep on the word of a broadcast: one call wakes many.
//!
//! - CAST-5: a waiter that sleeps on `state` has counted itself there first, with the generation
//!   with which it sleeps, and sleeps in a place for generations that are even, or odd; it is
//!   counted until the next send, or until it gives up. A send wakes all sleepers if they are not a
//!   crowd. Of a crowd, which is more than [`CrowdForm::ALONE`] of several nodes, it wakes `ALONE`,
//!   and each of these that finds the generation ended wakes as many again, until one has found
//!   fewer. A waiter that was chosen by a wake does not give up.
//! - CAST-6: a waiter that was chosen may sleep with a later generation, if a send's wake came so
//!   late that two other sends came in between. So a send wakes all that still sleep with the
//!   generation before the one that it ends, if these were a crowd and `woken` does not say that
//!   none sleeps: without that send, no waiter can be chosen in their place.
//!
//! A node is a NUMA node or, on a machine with only one, 16 CPUs: waking that many takes about as
//! long as the first of them takes to wake up. The waiters that are woken are the first in the
//! kernel's queue, of any node: to find waiters of its own node, each would have to look at all
//! sleepers, each in the cache of another CPU, under the one lock of the word. For the same reason
//! a crowd on the word is [bounded](State::has_room): more waiters sleep on lists, which have a
//! lock for each node.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Deadline, Parked, Platform};

use super::state::State;
use super::{Broadcast, Generation};
use crate::wait::CrowdForm;

/// The word has no room: the maximum number of waiters sleeps on it.
pub(super) struct NoRoom;

/// Number of CPUs that make up a node on a machine with one NUMA node.
const CPUS: u32 = 16;

impl<P: Platform, F: CrowdForm, const NODES: usize> Broadcast<P, F, NODES> {
    /// Sleeps on the state until the generation has ended; then wakes others, if they are a crowd.
    /// Returns an error if the word has no room for one more.
    pub(super) fn sleep(
        &self,
        seen: Generation,
        deadline: Option<Deadline>,
    ) -> Result<Option<Generation>, NoRoom> {
        let (state, woken) = (&self.head.0.state, &self.head.0.woken);
        let mark = seen.mark();
        // Relaxed, all accesses to `woken`: a waker that does not see that all were woken finds no
        // sleeper. The mark may be 2³² sends old; or new, and then one more waiter searches without
        // effect.
        if woken.load(Relaxed) == mark {
            woken.store(0, Relaxed);
        }
        // CAST-5.
        let (node, mut room) = (Self::node(), true);
        let mut lasts = self.turn(seen, |state| {
            room = state.has_room(F::ALONE);
            if room { state.with_sleeper(node) } else { state }
        });
        if lasts && !room {
            return Err(NoRoom);
        }
        while lasts {
            let parked = P::wait_on(state, seen.tag(), seen.place(), deadline);
            lasts = self.newer(seen).is_none();
            if lasts && parked == Parked::TimedOut && self.turn(seen, State::without_sleeper) {
                return Ok(None);
            }
        }
        // Acquire: CAST-1.
        let now = State(state.load(Acquire));
        if now.by_crowd(seen)
            && woken.load(Relaxed) != mark
            && P::wake_on(state, 1 << seen.place(), F::ALONE) < F::ALONE
        {
            woken.store(mark, Relaxed);
        }
        Ok(Some(now.generation()))
    }

    /// Returns the caller's node for a sleep on the state.
    fn node() -> usize {
        let node = if P::numa() { P::socket().0 } else { P::cpu().0 / CPUS };
        node as usize % NODES
    }

    /// Returns whether waiters of a crowd may still sleep with the generation before that of
    /// `state`.
    pub(super) fn sleeps_late(&self, state: State) -> bool {
        // Relaxed: once all were woken, that stays true.
        state.crowd_before()
            && self.head.0.woken.load(Relaxed) != state.generation().before().mark()
    }

    /// Wakes waiters that sleep on the word at this address: those with the generation that has
    /// `ended`, all or the first of a crowd (CAST-5), and if `late` those with the generation
    /// before it (CAST-6).
    #[cold]
    pub(super) fn wake_sleepers(word: *const P::U64, ended: State, late: bool) {
        let generation = ended.generation();
        if late {
            P::wake_on(word, 1 << generation.before().place(), u32::MAX);
        }
        if ended.sleepers() != 0 {
            let count = if ended.is_crowd(F::ALONE) { F::ALONE } else { u32::MAX };
            P::wake_on(word, 1 << generation.place(), count);
        }
    }
}
