//! A bell: a thread that has posted something for an owner wakes the owner if it sleeps, and only
//! then.
//!
//! | `ticket` | meaning |
//! |---|---|
//! | 0 | the owner is awake and checks by itself, or is being woken |
//! | other | the owner sleeps, or is about to: the argument for its [`Notify`] |
//!
//! - BELL-1 (no lost wake): a thread posts something, and then checks for a ticket; the owner
//!   leaves a ticket, and then checks for posts. At least one of them sees the other.
//! - BELL-2 (one notification): only the thread that takes a ticket away notifies. So however much
//!   is posted while the owner sleeps, it is notified once.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Notify, Platform, Ticket};

/// The word that the owner and the posters share.
pub(crate) struct Bell<P: Platform>(P::U64);

impl<P: Platform> Bell<P> {
    pub(crate) const NEW: Self = Self(P::U64::ZERO);

    /// Called after a post: wakes the owner if it sleeps.
    #[inline]
    pub(crate) fn ring(&self, notify: &impl Notify) {
        if let Some(ticket) = self.take() {
            notify.notify(ticket);
        }
    }

    /// Called after a post: returns the ticket that the caller must notify, if the owner sleeps.
    #[inline]
    pub(crate) fn take(&self) -> Option<Ticket> {
        // BELL-1: pairs with the fence in `arm`.
        P::fence(SeqCst);
        // Relaxed: it only shows whether there is a ticket. The post is acquired where it is taken
        // out.
        if self.0.load(Relaxed) == 0 {
            return None;
        }
        // BELL-2. Acquire: the object that the ticket names, as the owner has made it; pairs with
        // the release in `arm`.
        Ticket::new(self.0.swap(0, Acquire))
    }

    /// Called when the owner is about to sleep, unless it finds a post now.
    pub(crate) fn arm(&self, ticket: Ticket) {
        // Release: pairs with the acquire in `take`.
        self.0.store(ticket.get(), Release);
        // BELL-1: pairs with the fence in `take`.
        P::fence(SeqCst);
    }

    /// Called when the owner is awake.
    pub(crate) fn disarm(&self) {
        // Relaxed: a thread that took the ticket before may be late; one that checks now finds
        // none.
        self.0.store(0, Relaxed);
    }
}
