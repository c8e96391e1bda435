//! The test-and-test-and-set lock with exponential backoff.
//!
//! Source: J. Mellor-Crummey, M. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.1; reading before writing is from L. Rudolph
//! and Z. Segall (ISCA 1984).
//!
//! ```text
//!   read until it is free ──► write ──► was free: owner
//!            ▲                  │
//!            └── stay away ◄────┘ another was first: for twice as long as the last time
//! ```
//!
//! Waiters read the lock in their own caches and do not disturb its owner. All of them see it
//! become free at the same time; those that lose the race back off.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

/// The longest pause is the first one, doubled this many times.
const DOUBLINGS: u32 = 6;

/// A test-and-test-and-set lock, 1 byte. The first backoff is `FIRST_NS` nanoseconds long: by
/// default about as long as a line takes to come from another CPU.
#[repr(transparent)]
pub struct Ttas<P: Platform, const FIRST_NS: u32 = 100> {
    locked: P::U8,
}

impl<P: Platform, const FIRST_NS: u32> Ttas<P, FIRST_NS> {
    /// A free lock.
    pub const NEW: Self = Self { locked: P::U8::ZERO };

    /// Acquires the lock; spins until the caller has it.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_contended();
        }
    }

    /// Acquires the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    /// Releases the lock.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Release: pairs with the acquire of the next owner.
        self.locked.store(0, Release);
    }

    /// Returns whether the lock is held.
    pub(crate) fn is_held(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.load(Acquire) != 0
    }

    /// Spins until the lock is free.
    pub(crate) fn wait_for_release(&self) {
        // Relaxed: a caller that goes on checks again.
        self.locked.wait_while(Relaxed, |locked| locked != 0);
    }

    #[cold]
    fn lock_contended(&self) {
        let mut backoff_ns = FIRST_NS;
        loop {
            // Relaxed: the exchange that follows orders.
            self.locked.wait_while(Relaxed, |locked| locked != 0);
            if self.try_lock() {
                return;
            }
            stay_away::<P>(backoff_ns);
            backoff_ns = (2 * backoff_ns).min(FIRST_NS << DOUBLINGS);
        }
    }
}

/// Spins for `ns` nanoseconds on memory that no other thread touches.
pub(crate) fn stay_away<P: Platform>(ns: u32) {
    let still = P::U8::ZERO;
    // It always ends by its budget: no other thread can reach this byte.
    let _ = still.spin_while(Relaxed, Budget::ns(ns), |byte| byte == 0);
}

antiphon_sync::impl_lock!(unsafe [P: Platform, const FIRST_NS: u32] Ttas<P, FIRST_NS>);
