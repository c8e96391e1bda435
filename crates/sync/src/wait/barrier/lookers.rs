//! Who looks at a barrier until its wait is over, though others may be back: it has no node, or a
//! deadline. A count of them, and the process's epoch above it: a parent's are not there.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::{Barrier, NAP_NS};
use crate::nap;
use crate::wait::CrowdForm;

impl<P: Platform, F: CrowdForm> Barrier<P, F> {
    /// Waits until nobody looks at the barrier any more that has been let go: for who wants to free
    /// its memory, after a wait of its own has returned. At once unless a thread had to wait
    /// without a node, or waits with a deadline; nodes are had unless millions wait, or the system
    /// refuses the memory. Who borrows the barrier for the whole of its wait, as safe code does,
    /// needs none of this.
    pub fn retire(&self) {
        // Acquire: their last looks; pairs with the release in `look_on`.
        while Self::count(self.lookers.load(Acquire)) != 0 {
            nap::nap::<P>(NAP_NS);
        }
    }

    /// Runs a wait of which [`retire`](Self::retire) is to know.
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
