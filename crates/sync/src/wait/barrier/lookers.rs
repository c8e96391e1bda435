//! The count of threads that look at a barrier until their wait is over, even if others have
//! returned: threads without a node, or with a deadline. The count has the process's epoch above
//! it, because a parent's threads do not exist here.

use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Platform, WaiterId};

use super::{Barrier, NAP_NS};
use crate::nap;
use crate::wait::CrowdForm;

impl<P: Platform, F: CrowdForm> Barrier<P, F> {
    /// Waits until no thread that has been let go still looks at the barrier: for a caller that
    /// wants to free the barrier's memory after its own wait has returned. Returns at once unless a
    /// thread had to wait without a node, or waits with a deadline; nodes run out only if millions
    /// of threads wait, or the system refuses memory. A caller that borrows the barrier for its
    /// whole wait, as safe code does, does not need this.
    pub fn retire(&self) {
        // Acquire: the last looks of these threads; pairs with the release in `look_on`.
        while Self::count(self.lookers.load(Acquire)) != 0 {
            nap::nap::<P>(NAP_NS);
        }
    }

    /// Runs a wait that [`retire`](Self::retire) must wait for.
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

    /// Returns how many threads of this process are counted.
    fn count(lookers: u32) -> u32 {
        let ours = lookers >> WaiterId::INDEX_BITS == P::epoch();
        if ours { lookers & ((1 << WaiterId::INDEX_BITS) - 1) } else { 0 }
    }
}
