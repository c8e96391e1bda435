//! Threads that sleep on the word of a broadcast, each in a place: many are woken by one call.
//!
//! - CAST-5: who sleeps on `state` has turned its node's bit of places on first, with the
//!   generation with which it sleeps; nobody but the next send turns it off. Of one place a send
//!   wakes all. Of several it wakes [`CrowdForm::ALONE`], and if there were so many, one in each;
//!   each sleeper of such a place that finds the generation ended looks whether another has said
//!   that it wakes the rest of the place, and if not says so and does. Who was chosen by a wake
//!   does not give up, so somebody does.
//!
//! A place is a NUMA node or, on a machine of one, 16 CPUs: to wake so many takes about as long as
//! the first of them takes to come up.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use antiphon_platform::{Atomic, Deadline, Parked, Platform};

use super::state::State;
use super::{Broadcast, Generation};
use crate::wait::CrowdForm;

/// So many CPUs of a machine of one NUMA node are a place.
const CPUS: u32 = 16;

impl<P: Platform, F: CrowdForm, const NODES: usize> Broadcast<P, F, NODES> {
    /// Where the caller sleeps on the state.
    pub(super) fn place() -> usize {
        let place = if P::numa() { P::socket().0 } else { P::cpu().0 / CPUS };
        place as usize % NODES
    }

    /// Sleeps on the state until the generation has ended; then wakes others if it is the first of
    /// its place.
    pub(super) fn sleep(
        &self,
        place: usize,
        seen: Generation,
        deadline: Option<Deadline>,
    ) -> Option<Generation> {
        // CAST-5.
        while self.turn(seen, |state| state.with_place(place)) {
            let parked = P::wait_on(&self.state.0, seen.tag(), place as u32, deadline);
            if parked == Parked::TimedOut && self.newer(seen).is_none() {
                return None;
            }
        }
        // Acquire: CAST-1.
        let now = State(self.state.0.load(Acquire));
        // Relaxed, both: of those that ask, one sees nobody before it; and nothing is read by it.
        let (woken, mark) = (&self.nodes[place].0.woken, u64::from(seen.tag()) + 1);
        if now.by_heads(seen) && woken.load(Relaxed) != mark && woken.swap(mark, Relaxed) != mark {
            P::wake_on(&raw const self.state.0, 1 << place, u32::MAX);
        }
        Some(now.generation())
    }

    /// CAST-5: wakes who sleeps on the word of that name with the generation that has ended: all of
    /// one place; of several, if there are many, one in each.
    #[cold]
    pub(super) fn wake_places(word: *const P::U64, places: u32) {
        if places.is_power_of_two() {
            P::wake_on(word, places, u32::MAX);
        } else if P::wake_on(word, places, F::ALONE) == F::ALONE {
            for place in (0..NODES).map(|node| 1 << node).filter(|place| places & place != 0) {
                P::wake_on(word, place, 1);
            }
        }
    }
}
