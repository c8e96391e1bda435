//! An owner of a mailbox that has nothing to run: it spins, and then it sleeps.
//!
//! First it spins for a moment, for which it neither checks how crowded the machine is nor counts
//! itself among the spinners: an owner that waits for an answer of a running thread has the answer
//! then. What it leaves and looks at before it sleeps is in [`bell`](crate::sleep).

use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, Budget, Deadline, Hint, Notify, Parked, Platform, Ticket};
use antiphon_sync::nap;

use super::mailbox::Shared;
use super::{Delivered, Mailbox};

/// How long the moment is, in nanoseconds.
const MOMENT_NS: u32 = 1_000;
/// How long signals may go unseen while the owner spins for messages, in nanoseconds.
const SLICE_NS: u32 = 500;

impl<P: Platform, N: Notify> Mailbox<P, N> {
    /// How long [`wait`](Self::wait) spins by default before it sleeps, in nanoseconds: about as
    /// long as it takes to sleep and be woken.
    pub const SPIN_NS: u32 = 20_000;

    /// Delivers what is there, or waits until something is: spins for a while, and then sleeps.
    /// Returns nothing delivered if the deadline has passed.
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

    /// Spins until something is there, or for as long as that is worth it: then `false`.
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

    /// Spins until something is there, or for `left` nanoseconds: then `false`.
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

    /// Sleeps, unless something is there, until something may be.
    fn sleep(&mut self, deadline: Option<Deadline>) -> Parked {
        self.doze().map_or(Parked::Woken, |doze| doze.sleep(deadline))
    }

    /// For owners that sleep in a call of their own, such as the `epoll_wait` of an event loop:
    /// until what this returns is dropped, the [notifier](Doze::notifier) is notified of what is
    /// put in. `None` if something is there already: poll, and do not sleep.
    #[must_use]
    pub fn doze(&mut self) -> Option<Doze<'_, P, N>> {
        let ticket = self.shared.notify.begin();
        self.shared.bell.0.arm(ticket);
        // ROOM: the fence of the bell pairs with the one in `Sender::post_wait`.
        self.shared.tell_of_room(&mut self.freed);
        // Only now: BELL-1.
        let pending = self.is_pending();
        let doze = Doze { shared: &self.shared, ticket };
        (!pending).then_some(doze)
    }
}

/// `ns`, or how long it is until the deadline if that is less.
fn before<P: Platform>(deadline: Option<Deadline>, ns: u32) -> u32 {
    let Some(deadline) = deadline else { return ns };
    let left = deadline.ns.saturating_sub(P::now(deadline.clock));
    u32::try_from(left).map_or(ns, |left| left.min(ns))
}

/// An owner that sleeps, or is about to; it is awake when this is dropped.
#[must_use]
pub struct Doze<'a, P: Platform, N: Notify> {
    shared: &'a Shared<P, N>,
    ticket: Ticket,
}

impl<P: Platform, N: Notify> Doze<'_, P, N> {
    /// See [`Mailbox::notifier`].
    #[must_use]
    pub fn notifier(&self) -> &N {
        &self.shared.notify
    }

    /// Sleeps as the notifier does; see [`Notify::sleep`].
    fn sleep(&self, deadline: Option<Deadline>) -> Parked {
        // SAFETY: ours, until we are dropped.
        unsafe { self.shared.notify.sleep(self.ticket, deadline) }
    }
}

impl<P: Platform, N: Notify> Drop for Doze<'_, P, N> {
    fn drop(&mut self) {
        self.shared.bell.0.disarm();
        // SAFETY: ours, and this is the end.
        unsafe { self.shared.notify.end(self.ticket) };
    }
}
