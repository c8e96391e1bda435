//! A bell: a thread that has put something in, for an owner to find, wakes the owner if it sleeps,
//! and only then.
//!
//! | `ticket` | meaning |
//! |---|---|
//! | 0 | the owner is awake and looks by itself, or is being woken |
//! | other | the owner sleeps, or is about to: what to tell its [`Notify`] |
//!
//! - BELL-1 (no lost wake): a thread puts something in, and then looks for a ticket; the owner
//!   leaves a ticket, and then looks for something. At least one of them sees the other.
//! - BELL-2 (one notification): the thread that takes a ticket away notifies, and no other does. So
//!   however much is put in while the owner sleeps, it is notified once.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use antiphon_platform::{Atomic, Notify, Platform, Ticket};

/// The word where the owner and posters meet.
pub(crate) struct Bell<P: Platform>(P::U64);

impl<P: Platform> Bell<P> {
    pub(crate) const NEW: Self = Self(P::U64::ZERO);

    /// Something was put in: wakes the owner if it sleeps.
    #[inline]
    pub(crate) fn ring(&self, notify: &impl Notify) {
        if let Some(ticket) = self.take() {
            notify.notify(ticket);
        }
    }

    /// Something was put in: returns the ticket that the caller is to notify, if the owner sleeps.
    #[inline]
    pub(crate) fn take(&self) -> Option<Ticket> {
        // BELL-1: pairs with the fence in `arm`.
        P::fence(SeqCst);
        // Relaxed: it only says whether there is one. What was put in is acquired where it is taken
        // out.
        if self.0.load(Relaxed) == 0 {
            return None;
        }
        // BELL-2. Acquire: what the ticket names, as the owner has made it; pairs with the release
        // in `arm`.
        Ticket::new(self.0.swap(0, Acquire))
    }

    /// The owner is going to sleep, unless it finds something now.
    pub(crate) fn arm(&self, ticket: Ticket) {
        // Release: pairs with the acquire in `take`.
        self.0.store(ticket.get(), Release);
        // BELL-1: pairs with the fence in `take`.
        P::fence(SeqCst);
    }

    /// The owner is awake.
    pub(crate) fn disarm(&self) {
        // Relaxed: a thread that took the ticket before may be late; one that looks now finds none.
        self.0.store(0, Relaxed);
    }
}
