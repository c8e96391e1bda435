//! The ways in which the owner of a mailbox sleeps, on any platform: parked, or spinning.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{
    Arena, Atomic, Budget, Deadline, Notify, Parked, Platform, Ticket, Waiter, WaiterId, WaiterRef,
};
use antiphon_sync::nap;

/// Sleeps like the waiters of locks: [`Platform::park`]. On Linux that is a futex for a thread, and
/// a suspension for a fiber.
///
/// | bits of a ticket | meaning |
/// |---|---|
/// | 0–31 | index of the owner's node, 0 if none was free: the owner then naps |
/// | 32–63 | the node's generation, or 1 |
pub struct Park<P: Platform>(PhantomData<fn() -> P>);

/// How long an owner without a node sleeps between two checks, in nanoseconds.
const NAP_NS: u64 = 200_000;
const NO_NODE: Ticket = Ticket::MIN.saturating_add(u32::MAX as u64);

impl<P: Platform> Park<P> {
    /// The only value.
    pub const NEW: Self = Self(PhantomData);

    fn arena() -> &'static Arena<P> {
        // SAFETY: the generation of a node that was taken here is read; the node is parked on, and
        // given back.
        unsafe { P::arena() }
    }
}

fn reference(ticket: Ticket) -> Option<WaiterRef> {
    WaiterRef::from_bits(ticket.get())
}

impl<P: Platform> Notify for Park<P> {
    fn begin(&self) -> Ticket {
        let arena = Self::arena();
        let seen = arena.take().and_then(|id| arena.reference(id.index()));
        seen.and_then(|seen| Ticket::new(seen.bits())).unwrap_or(NO_NODE)
    }

    unsafe fn sleep(&self, ticket: Ticket, deadline: Option<Deadline>) -> Parked {
        let seen = reference(ticket);
        if let Some(node) = seen.and_then(|seen| Self::arena().resolve_index(seen.index)) {
            return P::park(node, deadline);
        }
        // The result does not matter: no other thread knows this node, and the nap may end before
        // the deadline.
        let _ = P::park(&Waiter::NEW, Some(nap::earlier::<P>(deadline, NAP_NS)));
        Parked::Woken
    }

    unsafe fn end(&self, ticket: Ticket) {
        let arena = Self::arena();
        // Not if a parent process took it: the node then has no owner in this process.
        let is_own = |seen: &WaiterRef| arena.reference(seen.index) == Some(*seen);
        if let Some(seen) = reference(ticket).filter(is_own) {
            arena.give(WaiterId::new(P::epoch(), seen.index));
        }
    }

    fn notify(&self, ticket: Ticket) {
        if let Some(seen) = reference(ticket) {
            P::unpark(seen);
        }
    }
}

impl<P: Platform> Default for Park<P> {
    fn default() -> Self {
        Self::NEW
    }
}

impl<P: Platform> fmt::Debug for Park<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Park")
    }
}

/// Spins instead of sleeping, without limit, on a CPU that the owner has for itself. Neither side
/// makes a system call.
pub struct Spin<P: Platform> {
    /// Not zero: notified.
    told: P::U32,
}

impl<P: Platform> Spin<P> {
    /// A value that is not notified.
    pub const NEW: Self = Self { told: P::U32::ZERO };
}

impl<P: Platform> Notify for Spin<P> {
    fn begin(&self) -> Ticket {
        // Relaxed, all: after a notification the owner checks for posts itself.
        self.told.store(0, Relaxed);
        Ticket::MIN
    }

    unsafe fn sleep(&self, _: Ticket, deadline: Option<Deadline>) -> Parked {
        const PIECE: Budget = Budget::ns(2_000);
        let told = self.told.spin_while(Relaxed, PIECE, |told| told == 0);
        let passed = told.is_err() && nap::passed::<P>(deadline);
        if passed { Parked::TimedOut } else { Parked::Woken }
    }

    unsafe fn end(&self, _: Ticket) {}

    fn notify(&self, _: Ticket) {
        self.told.store(1, Relaxed);
    }
}

impl<P: Platform> Default for Spin<P> {
    fn default() -> Self {
        Self::NEW
    }
}

impl<P: Platform> fmt::Debug for Spin<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spin")
    }
}
