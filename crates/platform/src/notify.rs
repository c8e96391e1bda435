//! Sleeping until another thread notifies the sleeper of work.

use core::num::NonZeroU64;

use crate::{Deadline, Parked};

/// The bits that a sleeper leaves for its notifier. Plain bits, so that a late notifier never holds
/// a dangling reference.
pub type Ticket = NonZeroU64;

/// A way to sleep and to be notified: a parked waiter, a file descriptor, a signal, an interrupt.
///
/// One thread sleeps; any other thread notifies it. They meet in a word of the primitive: the
/// sleeper leaves its ticket there, and at most one notifier takes it:
///
/// ```text
///  sleeper                                   notifier
///  ───────                                   ────────
///  ticket = begin()                          publishes work
///  leaves the ticket, fence, checks again    fence, takes the ticket if there is one
///  sleep(ticket), until there is work          and then: notify(ticket)
///  takes the ticket back
///  end(ticket)
/// ```
pub trait Notify: Send + Sync + 'static {
    /// Announces that the caller is about to sleep, until it calls [`end`](Self::end). Does not
    /// block.
    fn begin(&self) -> Ticket;

    /// Blocks the caller until [`notify`](Self::notify) was called, perhaps before this call, or
    /// the deadline has passed; may also return spuriously.
    ///
    /// # Safety
    ///
    /// `ticket` comes from the caller's [`begin`](Self::begin), and the caller has not called
    /// [`end`](Self::end) with it.
    unsafe fn sleep(&self, ticket: Ticket, deadline: Option<Deadline>) -> Parked;

    /// Announces that the caller is awake, and has taken the ticket back if no notifier had taken
    /// it. In the child of a `fork` it may be a ticket of the parent.
    ///
    /// # Safety
    ///
    /// As for [`sleep`](Self::sleep), and the caller may call it once per ticket. The object that
    /// the ticket names then belongs to another sleeper.
    unsafe fn end(&self, ticket: Ticket);

    /// Ends the present or next [`sleep`](Self::sleep) with that ticket. If that sleep has already
    /// ended, the only possible effect is that a later sleep returns spuriously.
    fn notify(&self, ticket: Ticket);
}
