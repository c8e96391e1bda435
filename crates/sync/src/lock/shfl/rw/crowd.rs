//! How a crowd of writers takes an indicator, as a crowd of readers does, so that the writers wait
//! for each other in its mutex, which is handed over (`writers.rs`), and not in the lock's queue.
//!
//! - RW-15: a writer that has the lock, and finds a crowd of writers in the queue, has readers
//!   counted by socket from then on, by an exchange that finds none counted in the state. So a
//!   reader that is counted there, and found the mode to be central, finds it so until it takes its
//!   count back, as RW-9 says. No reader is in by a line: the mode has not been open while the lock
//!   has had the indicator.
//!
//! Readers count as few until some are seen to come, so the indicator is given back by the first
//! writer that leaves no other writer waiting.

use core::sync::atomic::Ordering::{Relaxed, Release};

use antiphon_platform::{Atomic, Clock, Platform};

use super::super::queue::Place;
use super::indicator::Lines;
use super::row::MOVES;
use super::spread::LONGEST_REST;
use super::state::State;
use super::{RwForm, ShflRwLock};
use crate::policy::Policy;

impl<P: Platform, Q: Policy, F: RwForm> ShflRwLock<P, Q, F> {
    /// RW-15: makes the writers wait for each other from now on, if a crowd of them stands behind
    /// `first`. Called by the writer, which has come in and found the state as `found`.
    #[cold]
    #[inline(never)]
    pub(super) fn shut_if_crowded(&self, found: State, first: Place<P>) {
        if found.is_spread()
            || !Self::may_spread()
            || !self.is_rested()
            || !stand_behind(first, F::WRITERS)
            || P::is_foreign(core::ptr::from_ref(self).addr())
        {
            return;
        }
        let Some((lines, name)) = Lines::<P>::claim() else { return self.rest(LONGEST_REST) };
        // Relaxed: published with the mode. No reader is in, so no other thread is about to do it.
        self.lines.store(name, Relaxed);
        self.rest.store(0, Relaxed);
        let owner = lines.owner();
        // Readers count as few until some are seen to come.
        owner.idle.store(F::IDLE, Relaxed);
        owner.entered.store(lines.entered(), Relaxed);
        owner.since_ns.store(P::now(Clock::Monotonic), Relaxed);
        owner.until_ns.store(0, Relaxed);
        // Release: pairs with the acquires of threads that read the mode, and then the name.
        // mutant: seen only where the lock has had another indicator before, whose name a writer
        // that comes still finds: one life of the lock more than the models have.
        if self.change(Release, State::shut).is_err() {
            // Relaxed: the thread that writes it next comes after us.
            self.lines.store(0, Relaxed);
            lines.give();
        }
    }
}

/// Returns whether the next `count` waiters behind this one want to write, and will move (HEIR-8).
/// Touches only nodes, which may stand in another queue by now.
pub(super) fn stand_behind<P: Platform>(first: Place<P>, count: u32) -> bool {
    let mut at = Some(first);
    (0..count).all(|_| {
        // Relaxed: as in `row::reads`.
        at = at.and_then(Place::next).filter(|next| next.node.wants.load(Relaxed) == MOVES);
        at.is_some()
    })
}
