//! The ticket lock: first come, first served, by two counters.
//!
//! Source: J. Mellor-Crummey, M. Scott, "Algorithms for Scalable Synchronization on Shared-Memory
//! Multiprocessors", ACM TOCS 9(1), 1991, section 2.2, without its backoff.
//!
//! ```text
//! next     the ticket that the next arriving waiter draws
//! serving  the ticket whose holder owns the lock; free when it equals `next`
//! ```
//!
//! The simplest fair lock, and the first that collapses: all waiters see each release, and all wait
//! for one waiter that may not be running. It is also the simplest client of the seam (`Platform`).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use antiphon_platform::{Atomic, AtomicInteger, Platform};

/// A ticket lock, 4 bytes. At most 65 535 threads may wait at a time.
pub struct Ticket<P: Platform> {
    next: P::U16,
    serving: P::U16,
}

impl<P: Platform> Ticket<P> {
    /// A free lock.
    pub const NEW: Self = Self { next: P::U16::ZERO, serving: P::U16::ZERO };

    /// Draws a ticket and spins until that ticket is served.
    #[inline]
    pub fn lock(&self) {
        // Relaxed: the ticket orders nothing, `serving` does.
        let ticket = self.next.fetch_add(1, Relaxed);
        // Acquire: pairs with the release in `unlock`.
        self.serving.wait_while(Acquire, |serving| serving != ticket);
    }

    /// Draws a ticket only if it is served at once.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire: pairs with the release in `unlock`. If the exchange succeeds, `next` was
        // `serving` at that time, so no other thread holds or will get this ticket.
        let serving = self.serving.load(Acquire);
        self.next.compare_exchange(serving, serving.wrapping_add(1), Relaxed, Relaxed).is_ok()
    }

    /// Serves the next ticket.
    ///
    /// # Safety
    ///
    /// The caller owns the lock.
    #[inline]
    pub unsafe fn unlock(&self) {
        // Relaxed: only the owner writes it. Release: pairs with the acquire of the next owner.
        let serving = self.serving.load(Relaxed);
        self.serving.store(serving.wrapping_add(1), Release);
    }

    /// Returns whether the lock is held.
    pub(crate) fn is_held(&self) -> bool {
        // Acquire: pairs with the release in `unlock`.
        let serving = self.serving.load(Acquire);
        // Relaxed: if it still equals `serving`, no thread has drawn that ticket.
        self.next.load(Relaxed) != serving
    }

    /// Spins until the lock, if it is held, was passed on once.
    pub(crate) fn wait_for_release(&self) {
        // Acquire: pairs with the release in `unlock`, so that `next` is not read as it was before
        // `seen` was drawn: otherwise we might wait for the release of a free lock.
        let seen = self.serving.load(Acquire);
        if self.next.load(Relaxed) != seen {
            // Relaxed: a caller that goes on checks again.
            self.serving.wait_while(Relaxed, |serving| serving == seen);
        }
    }
}

antiphon_sync::impl_lock!(unsafe [P: Platform] Ticket<P>);
