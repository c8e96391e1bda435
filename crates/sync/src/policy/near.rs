//! Policies that keep the lock, and what it guards, near where it was.

use core::cmp::Ordering;
use core::sync::atomic::Ordering::Relaxed;

use antiphon_platform::{Atomic, CpuId, Platform, Waiter};

use super::Policy;

/// Waiters of the same socket stand together, so that the lock and what it guards cross sockets
/// seldom (`000_…`, "Sort waiters on the fly using socket ID"). Does nothing on one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numa;

impl Policy for Numa {
    fn shuffles<P: Platform>(self) -> bool {
        P::numa()
    }

    fn on_wait<P: Platform>(self, me: &Waiter<P>) {
        // Relaxed, as in all policies: published with the node, by the exchange of the tail.
        me.socket.store(P::socket().0 as u16, Relaxed);
    }

    fn groups<P: Platform>(self, shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        // Relaxed: written before the waiter joined the queue, whose links are acquired.
        shuffler.socket.load(Relaxed) == candidate.socket.load(Relaxed)
    }
}

/// The nearest waiter first: those who share a cache with the head, then those of its socket, then
/// by hops (`000_…`, "Shuffling can support other policies": a non-inclusive cache, a multi-level
/// NUMA hierarchy). As many levels as the platform knows ([`Platform::distance`]); does nothing
/// where it knows none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance;

impl Policy for Distance {
    fn shuffles<P: Platform>(self) -> bool {
        P::tiered()
    }

    fn on_wait<P: Platform>(self, me: &Waiter<P>) {
        me.cpu.store(P::cpu().0 as u16, Relaxed);
    }

    /// Who shares the nearest cache sees all others equally far away.
    fn groups<P: Platform>(self, shuffler: &Waiter<P>, candidate: &Waiter<P>) -> bool {
        distance(shuffler, candidate) == distance(shuffler, shuffler)
    }

    fn sorts(self) -> bool {
        true
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiter<P>,
        one: &Waiter<P>,
        other: &Waiter<P>,
    ) -> Ordering {
        distance(shuffler, one).cmp(&distance(shuffler, other))
    }
}

fn distance<P: Platform>(from: &Waiter<P>, to: &Waiter<P>) -> u32 {
    // Relaxed: as the sockets above.
    let [from, to] = [from, to].map(|waiter| CpuId(waiter.cpu.load(Relaxed).into()));
    P::distance(from, to)
}
