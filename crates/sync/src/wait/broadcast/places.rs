//! Threads that sleep on the word of a broadcast: one call wakes many.
//!
//! - CAST-5: a waiter that sleeps on `state` has counted itself there first, with the generation
//!   with which it sleeps, and sleeps in a place for generations that are even, or odd; it is
//!   counted until the next send, or until it gives up. A send wakes all if they are no crowd. Of a
//!   crowd, more than [`CrowdForm::ALONE`] of several nodes, it wakes `ALONE`, and each of these
//!   that finds the generation ended wakes as many again, until one has found fewer. A waiter that
//!   was chosen by a wake does not give up.
//! - CAST-6: a waiter that was chosen may sleep with a later generation, if a send has woken so
//!   late that two other sends have come between. So a send wakes all that still sleep with the
//!   generation before the one that it ends, if these were a crowd, and unless `woken` says that
//!   none does: without that send, no waiter can be chosen in their place.
//!
//! A node is a NUMA node or, on a machine of one, 16 CPUs: to wake that many takes about as long as
//! the first of them takes to come up. The waiters that are woken are the first in the kernel's
//! queue, of whatever node: to find those of its own, each would have to look at all that sleep,
//! each in the cache of another CPU, under the one lock of the word. For the same reason a crowd on
//! the word is [bounded](State::has_room): more waiters sleep on lists, which have a lock for each
//! node.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Deadline, Parked, Platform};

use super::state::State;
use super::{Broadcast, Generation};
use crate::wait::CrowdForm;

/// The word has no room: as many sleep on it as may.
pub(super) struct NoRoom;

/// Number of CPUs that make a node on a machine of one NUMA node.
const CPUS: u32 = 16;

impl<P: Platform, F: CrowdForm, const NODES: usize> Broadcast<P, F, NODES> {
    /// Sleeps on the state until the generation has ended; then wakes others, if they are a crowd.
    /// `Err`: there is no room for one more.
    pub(super) fn sleep(
        &self,
        seen: Generation,
        deadline: Option<Deadline>,
    ) -> Result<Option<Generation>, NoRoom> {
        let (state, woken) = (&self.head.0.state, &self.head.0.woken);
        let mark = seen.mark();
        // Relaxed, all of `woken`: a waker that does not see that all were woken finds none. The
        // mark may be 2³² sends old; or from just now, and then one more looks.
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

    /// The caller's node when it sleeps on the state.
    fn node() -> usize {
        let node = if P::numa() { P::socket().0 } else { P::cpu().0 / CPUS };
        node as usize % NODES
    }

    /// Whether some of a crowd may still sleep with the generation before that of `state`.
    pub(super) fn sleeps_late(&self, state: State) -> bool {
        // Relaxed: once all were woken, that stays true.
        state.crowd_before()
            && self.head.0.woken.load(Relaxed) != state.generation().before().mark()
    }

    /// Wakes waiters that sleep on the word of that name with the generation that has `ended`, all
    /// or the first of a crowd (CAST-5), and with the generation before, if some still may
    /// (CAST-6).
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
