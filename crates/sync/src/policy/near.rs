//! Policies that keep the lock, and what it guards, near where it was.

use core::cmp::Ordering;

use antiphon_platform::Platform;

use super::{Policy, Waiting};

/// Waiters of the same socket stand together, so that the lock and the data that it guards seldom
/// cross sockets (`000_…`, "Sort waiters on the fly using socket ID"). Does nothing on one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Numa;

impl Policy for Numa {
    fn shuffles<P: Platform>(self) -> bool {
        P::numa()
    }

    fn by_socket<P: Platform>(self) -> bool {
        P::numa()
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        me.set_socket(P::socket());
    }

    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        shuffler.socket() == candidate.socket()
    }
}

/// The nearest waiter first: waiters that share a cache with the head, then waiters of its socket,
/// then by hops (`000_…`, "Shuffling can support other policies": a non-inclusive cache, a
/// multi-level NUMA hierarchy). It has as many levels as the platform knows
/// ([`Topology::distance`](antiphon_platform::Topology::distance)); does nothing where it knows
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Distance;

impl Policy for Distance {
    fn shuffles<P: Platform>(self) -> bool {
        P::tiered()
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        me.set_cpu(P::cpu());
    }

    /// Waiters that share the nearest cache see all others equally far away.
    fn groups<P: Platform>(self, shuffler: &Waiting<P>, candidate: &Waiting<P>) -> bool {
        distance(shuffler, candidate) == distance(shuffler, shuffler)
    }

    fn sorts(self) -> bool {
        true
    }

    fn compare<P: Platform>(
        self,
        shuffler: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        distance(shuffler, one).cmp(&distance(shuffler, other))
    }
}

fn distance<P: Platform>(from: &Waiting<P>, to: &Waiting<P>) -> u32 {
    P::distance(from.cpu(), to.cpu())
}
