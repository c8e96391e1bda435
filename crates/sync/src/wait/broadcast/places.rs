//! Threads that sleep on the word of a broadcast, each in a place: many are woken by one call.
//!
//! - CAST-5: who sleeps on `state` has turned its node's bit on first, with the generation with
//!   which it sleeps, and sleeps in a place for its node and for generations that are even, or odd;
//!   the bits are on until the next send, or until the last of all sleepers gives up.
//!   Of one node a send wakes all. Of several it wakes [`CrowdForm::ALONE`], and if there were so
//!   many, one in each; each sleeper of such a node that finds the generation ended looks whether
//!   another has said that it wakes the rest, and if not says so and does. Who was chosen by a wake
//!   does not give up.
//! - CAST-6: who was chosen may sleep with a later generation, if a send has woken so late that two
//!   others have come between. So a send wakes all that still sleep with the generation before the
//!   one that it ends, if these were let go one in each node: without that one, nobody can be
//!   chosen in their place.
//!
//! A node is a NUMA node or, on a machine of one, 16 CPUs: to wake so many takes about as long as
//! the first of them takes to come up.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Deadline, Parked, Platform};

use super::state::{ALL_NODES, State};
use super::{Broadcast, Generation};
use crate::wait::CrowdForm;

/// So many CPUs of a machine of one NUMA node are a node.
const CPUS: u32 = 16;

impl<P: Platform, F: CrowdForm, const NODES: usize> Broadcast<P, F, NODES> {
    /// Of which node the caller is when it sleeps on the state.
    pub(super) fn node() -> usize {
        let node = if P::numa() { P::socket().0 } else { P::cpu().0 / CPUS };
        node as usize % NODES
    }

    /// Sleeps on the state until the generation has ended; then wakes others if it is the first of
    /// its node.
    pub(super) fn sleep(
        &self,
        node: usize,
        seen: Generation,
        deadline: Option<Deadline>,
    ) -> Option<Generation> {
        // Relaxed, all: of those that ask below, one sees nobody before it; nothing is read by it.
        let (woken, mark) = (&self.nodes[node].0.woken, u64::from(seen.tag()) + 1);
        // From 2³² sends ago; or new, and then two wake the rest.
        if woken.load(Relaxed) == mark {
            woken.store(0, Relaxed);
        }
        // CAST-5.
        let mut lasts = self.turn(seen, |state| state.with_sleeper(node));
        while lasts {
            let parked = P::wait_on(&self.state.0, seen.tag(), seen.place(node), deadline);
            lasts = self.newer(seen).is_none();
            if lasts && parked == Parked::TimedOut && self.turn(seen, State::without_sleeper) {
                return None;
            }
        }
        // Acquire: CAST-1.
        let now = State(self.state.0.load(Acquire));
        if now.by_heads(seen) && woken.load(Relaxed) != mark && woken.swap(mark, Relaxed) != mark {
            P::wake_on(&raw const self.state.0, seen.places(1 << node), u32::MAX);
        }
        Some(now.generation())
    }

    /// Wakes who sleeps on the word of that name with the generation that has `ended`, all or the
    /// first of each node (CAST-5), and who still does with the one before (CAST-6).
    #[cold]
    pub(super) fn wake_sleepers(word: *const P::U64, ended: State) {
        let (generation, nodes) = (ended.generation(), ended.sleepers());
        if ended.heads() {
            P::wake_on(word, generation.before().places(ALL_NODES), u32::MAX);
        }
        if nodes.is_power_of_two() {
            P::wake_on(word, generation.places(nodes), u32::MAX);
        } else if nodes != 0 && P::wake_on(word, generation.places(nodes), F::ALONE) == F::ALONE {
            for node in (0..NODES).map(|node| 1 << node).filter(|node| nodes & node != 0) {
                P::wake_on(word, generation.places(node), 1);
            }
        }
    }
}
