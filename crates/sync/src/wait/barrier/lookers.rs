//! Threads that look at a barrier until their wait is over, though others may be back: they have no
//! node, or a deadline. The word is their count, with the process's epoch above it: a parent's
//! threads do not exist here.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::{Barrier, NAP_NS};
use crate::nap;
use crate::wait::CrowdForm;

impl<P: Platform, F: CrowdForm> Barrier<P, F> {
    /// Waits until no thread looks at the barrier any more that has been let go: for a caller that
    /// wants to free the barrier's memory, after a wait of its own has returned. Returns at once
    /// unless a thread had to wait without a node, or waits with a deadline; there are nodes unless
    /// millions wait, or the system refuses the memory. A caller that borrows the barrier for the
    /// whole of its wait, as safe code does, needs none of this.
    pub fn retire(&self) {
        // Acquire: their last looks; pairs with the release in `look_on`.
        while Self::count(self.lookers.load(Acquire)) != 0 {
            nap::nap::<P>(NAP_NS);
        }
    }

    /// Runs a wait that [`retire`](Self::retire) has to wait for.
    pub(super) fn look_on(&self, wait: impl FnOnce() -> Option<bool>) -> Option<bool> {
        self.recount(Relaxed, |lookers| lookers + 1);
        let told = wait();
        // Release: our last look; pairs with the acquire in `retire`.
        self.recount(Release, |lookers| lookers.saturating_sub(1));
        told
    }

    /// Changes the count of lookers.
    fn recount(&self, order: Ordering, change: impl Fn(u32) -> u32) {
        let mut seen = self.lookers.load(Relaxed);
        loop {
            let new = P::epoch() << WaiterId::INDEX_BITS | change(Self::count(seen));
            match self.lookers.compare_exchange(seen, new, order, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// How many threads of this process look on.
    fn count(lookers: u32) -> u32 {
        let ours = lookers >> WaiterId::INDEX_BITS == P::epoch();
        if ours { lookers & ((1 << WaiterId::INDEX_BITS) - 1) } else { 0 }
    }
}
