//! The sleep of a thread that is notified when there is something to do.

use core::num::NonZeroU64;

use crate::{Deadline, Parked};

/// The bits that a sleeper hands to its notifier: plain bits, so that what a late notifier holds is
/// never a reference into something that is gone.
pub type Ticket = NonZeroU64;

/// A way to sleep, and to be notified: a parked waiter, a file descriptor, a signal, an interrupt.
///
/// One thread sleeps, any others notify it. They meet in a word of the primitive's, in which the
/// sleeper leaves its ticket, and from which one notifier at most takes it:
///
/// ```text
///  sleeper                                   notifier
///  ───────                                   ────────
///  ticket = begin()                          makes something to do
///  leaves the ticket, fence, looks again     fence, takes the ticket if there is one
///  sleep(ticket), until there is something     and then: notify(ticket)
///  takes the ticket back
///  end(ticket)
/// ```
pub trait Notify: Send + Sync + 'static {
    /// The caller is about to sleep; ends with [`end`](Self::end). Does not block.
    fn begin(&self) -> Ticket;

    /// Blocks the caller until [`notify`](Self::notify), which may have come first, until the
    /// deadline, or for no reason.
    ///
    /// # Safety
    ///
    /// The caller has the ticket of [`begin`](Self::begin), and has not ended with it.
    unsafe fn sleep(&self, ticket: Ticket, deadline: Option<Deadline>) -> Parked;

    /// The caller is awake, and has taken the ticket back if no notifier had. In the child of a
    /// `fork` it may be a ticket of the parent's.
    ///
    /// # Safety
    ///
    /// See [`sleep`](Self::sleep); the caller may do so once. What the ticket names belongs to
    /// another from now on.
    unsafe fn end(&self, ticket: Ticket);

    /// Ends the present or next [`sleep`](Self::sleep) with that ticket. May come late, when that
    /// has ended already: then it may end a later one, for no reason, and does nothing else.
    fn notify(&self, ticket: Ticket);
}
