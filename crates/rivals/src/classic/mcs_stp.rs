//! The MCS lock whose waiters sleep after a while: spin-then-park.
//!
//! Source: as for [`Mcs`]; spinning for a bounded time first is from A. Karlin, K. Li, M. Manasse
//! and S. Owicki ("Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor",
//! SOSP 1991). `004_…`, "Spin-then-park strategy", names the cost: if the next waiter of the queue
//! sleeps, its wake-up is part of the hand-off.
//!
//! ```text
//!             spun for SPIN_NS                 (sleeps)
//!   WAITING ────────────────────► PARKED ─────────────┐
//!      │ grant                       │ grant, and wake │
//!      └────────► GRANTED ◄──────────┘◄────────────────┘
//! ```

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

use super::mcs::{GRANTED, Mcs, WAITING};

/// The status of a waiter that sleeps, or is about to.
const PARKED: u32 = 2;

/// An MCS lock whose waiters spin for `SPIN_NS` nanoseconds and then sleep; 8 bytes, and a node of
/// 64 for the owner and for each waiter.
#[repr(transparent)]
pub struct McsStp<P: Platform, const SPIN_NS: u32 = 9_000> {
    queue: Mcs<P>,
}

impl<P: Platform, const SPIN_NS: u32> McsStp<P, SPIN_NS> {
    /// A free lock.
    pub const NEW: Self = Self { queue: Mcs::NEW };

    /// Joins the queue, spins for a while, and sleeps until the lock is granted. Naps first if
    /// there is no node for the caller.
    pub fn lock(&self) {
        self.queue.lock_by(|me| {
            let status = &me.waiter.status;
            // Acquire: pairs with the release in `unlock`.
            let spun = status.spin_while(Acquire, Budget::ns(SPIN_NS), |seen| seen == WAITING);
            // Relaxed where it succeeds: it only announces that we sleep. Acquire where it fails:
            // pairs with the release in `unlock`.
            if spun.is_err() && status.compare_exchange(WAITING, PARKED, Relaxed, Acquire).is_ok() {
                me.sleep_while(PARKED);
            }
        });
    }

    /// Acquires the lock if it is free and there is a node for the caller; never blocks.
    pub fn try_lock(&self) -> bool {
        self.queue.try_lock()
    }

    /// Releases the lock, to the next waiter of the queue if there is one; wakes it if it sleeps.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    pub unsafe fn unlock(&self) {
        self.queue.unlock_by(|next| {
            let sleeper = next.reference();
            // Release: pairs with the acquires in `lock`.
            let was = next.waiter.status.swap(GRANTED, Release);
            if let Some(sleeper) = sleeper.filter(|_| was == PARKED) {
                P::unpark(sleeper);
            }
        });
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform, const SPIN_NS: u32] McsStp<P, SPIN_NS>);
