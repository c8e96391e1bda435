//! Stamps from CPUs' counters, and what is known for certain about their order.

use core::marker::PhantomData;

use antiphon_platform::Platform;

/// The order of two stamps, as far as it is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Order {
    /// The first stamp was taken before the second.
    Less,
    /// The first stamp was taken after the second.
    Greater,
    /// The stamps were taken at the same time or in such quick succession that the order is
    /// unknown.
    Uncertain,
}

/// A clock for threads on all CPUs that were [measured](super::Meeting). A stamp is the value of
/// the counter under the caller; taking one touches no memory that any thread writes to.
#[derive(Debug)]
pub struct Ordo<P> {
    apart: u64,
    machine: PhantomData<fn() -> P>,
}

impl<P: Platform> Ordo<P> {
    /// A clock on a machine whose counters differ by at most `apart` ticks
    /// ([`Apart::ticks`](super::Apart::ticks)). If `apart` is too small, orders are wrong.
    #[must_use]
    pub const fn new(apart: u64) -> Self {
        Self { apart, machine: PhantomData }
    }

    /// Returns the distance, in ticks, beyond which the order of two stamps is certain.
    #[must_use]
    pub const fn uncertainty(&self) -> u64 {
        self.apart
    }

    /// Returns a stamp of this moment.
    #[must_use]
    #[inline]
    pub fn now(&self) -> u64 {
        P::counter()
    }

    /// CLOCK-2: returns which of two stamps was taken first, if that is certain.
    #[inline]
    pub fn cmp(&self, one: u64, other: u64) -> Order {
        match () {
            () if one > other.saturating_add(self.apart) => Order::Greater,
            () if other > one.saturating_add(self.apart) => Order::Less,
            () => Order::Uncertain,
        }
    }

    /// Returns a stamp that is certainly after `stamp`. Spins for at most the uncertainty, if
    /// `stamp` was taken before this call.
    #[must_use]
    pub fn new_time(&self, stamp: u64) -> u64 {
        P::counter_after(stamp.saturating_add(self.apart))
    }
}

impl<P> Clone for Ordo<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Ordo<P> {}
