//! The test-and-set lock: a byte that each waiter writes until it has found it free.
//!
//! Source: T. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory
//! Multiprocessors", IEEE TPDS 1(1), 1990, "Spin on Test-and-Set".
//!
//! The smallest lock, and the worst: each attempt of each waiter takes the cache line away from the
//! owner.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, Budget, Platform};

/// Shortest possible pause between two writes.
const PAUSE: Budget = Budget::ns(1);

/// A test-and-set lock, 1 byte.
#[repr(transparent)]
pub struct Tas<P: Platform> {
    locked: P::U8,
}

impl<P: Platform> Tas<P> {
    /// A free lock.
    pub const NEW: Self = Self { locked: P::U8::ZERO };

    /// Writes the lock until it finds it free; spins.
    #[inline]
    pub fn lock(&self) {
        while !self.try_lock() {
            // The result does not matter: the next attempt is a write.
            let _ = self.locked.spin_while(Relaxed, PAUSE, |locked| locked != 0);
        }
    }

    /// Acquires the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        self.locked.swap(1, Acquire) == 0
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
}

antiphon_sync::impl_lock!(unsafe [P: Platform] Tas<P>);
