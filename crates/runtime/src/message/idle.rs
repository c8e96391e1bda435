//! The wait of an owner that has nothing to run: it spins, and then it sleeps.
//!
//! First it spins for a moment, in which it neither checks how crowded the machine is nor counts
//! itself as a spinner: if the owner waits for an answer of a running thread, the answer arrives
//! then. The ticket that it leaves before it sleeps is described in [`bell`](crate::sleep).

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Budget, Deadline, Hint, Notify, Parked, Platform, Ticket};
use antiphon_sync::nap;

use super::mailbox::Shared;
use super::{Delivered, Mailbox};

/// Length of that moment, in nanoseconds.
const MOMENT_NS: u32 = 1_000;
/// How long signals may go unnoticed while the owner spins for messages, in nanoseconds.
const SLICE_NS: u32 = 500;

impl<P: Platform, N: Notify> Mailbox<P, N> {
    /// The default time for which [`wait`](Self::wait) spins before it sleeps, in nanoseconds:
    /// about the cost of a sleep and a wake-up.
    pub const SPIN_NS: u32 = 20_000;

    /// Delivers what has arrived, or waits until something has: spins for a while, and then sleeps.
    /// Returns an empty result if the deadline has passed.
    pub fn wait(&mut self, deadline: Option<Deadline>) -> Delivered {
        let mut last = false;
        loop {
            let delivered = self.poll();
            if last || !delivered.is_empty() {
                return delivered;
            }
            last = !self.spin(deadline) && self.sleep(deadline) == Parked::TimedOut
                || nap::passed::<P>(deadline);
        }
    }

    /// Spins until something has arrived; returns `false` when further spinning is not worth it.
    fn spin(&self, deadline: Option<Deadline>) -> bool {
        let moment = self.spin_ns.min(MOMENT_NS);
        if self.spin_for(before::<P>(deadline, moment)) {
            return true;
        }
        let rest = before::<P>(deadline, self.spin_ns - moment);
        if rest == 0 || P::crowded() {
            return false;
        }
        P::hint(Hint::SpinBegin);
        let seen = self.spin_for(rest);
        P::hint(Hint::SpinEnd);
        seen
    }

    /// Spins until something has arrived; returns `false` after `left` nanoseconds.
    fn spin_for(&self, mut left: u32) -> bool {
        while left > 0 {
            let slice = left.min(SLICE_NS);
            // Relaxed: as in `is_pending`.
            if self.shared.ring.spin(&self.cursor, Budget::ns(slice))
                || self.shared.signals.0.load(Relaxed) != 0
            {
                return true;
            }
            left -= slice;
        }
        false
    }

    /// Sleeps until something may have arrived, unless something has already.
    fn sleep(&mut self, deadline: Option<Deadline>) -> Parked {
        self.doze().map_or(Parked::Woken, |doze| doze.sleep(deadline))
    }

    /// For owners that sleep in their own call, such as the `epoll_wait` of an event loop: until
    /// the returned value is dropped, the [notifier](Doze::notifier) is notified of each arrival.
    /// `None` if something has arrived already: poll, and do not sleep.
    #[must_use]
    pub fn doze(&mut self) -> Option<Doze<'_, P, N>> {
        let ticket = self.shared.notify.begin();
        self.shared.bell.0.arm(ticket);
        // ROOM: the fence of the bell pairs with the one in `Sender::post_wait`.
        self.shared.tell_of_room(&mut self.freed);
        // Only after the bell is armed: BELL-1.
        let pending = self.is_pending();
        let doze = Doze { shared: &self.shared, ticket };
        (!pending).then_some(doze)
    }
}

/// Returns `ns`, or the time until the deadline if that is less.
fn before<P: Platform>(deadline: Option<Deadline>, ns: u32) -> u32 {
    let Some(deadline) = deadline else { return ns };
    let left = deadline.ns.saturating_sub(P::now(deadline.clock));
    u32::try_from(left).map_or(ns, |left| left.min(ns))
}

/// An owner that sleeps, or is about to, until this is dropped.
#[must_use]
pub struct Doze<'a, P: Platform, N: Notify> {
    shared: &'a Shared<P, N>,
    ticket: Ticket,
}

impl<P: Platform, N: Notify> Doze<'_, P, N> {
    /// Returns the notifier: see [`Mailbox::notifier`].
    #[must_use]
    pub fn notifier(&self) -> &N {
        &self.shared.notify
    }

    /// Sleeps through the notifier; see [`Notify::sleep`].
    fn sleep(&self, deadline: Option<Deadline>) -> Parked {
        // SAFETY: the ticket belongs to this value until it is dropped.
        unsafe { self.shared.notify.sleep(self.ticket, deadline) }
    }
}

impl<P: Platform, N: Notify> Drop for Doze<'_, P, N> {
    fn drop(&mut self) {
        self.shared.bell.0.disarm();
        // SAFETY: the ticket belongs to this value, and is not used after this.
        unsafe { self.shared.notify.end(self.ticket) };
    }
}
