//! Policies that need to know a lock's owner: they do what they say in
//! [`ShflOwned`](crate::lock::ShflOwned), and nothing in a lock that has no owner word.

use core::cmp::Ordering;

use antiphon_platform::Platform;

use super::{Policy, Priority, Waiting};
use crate::lock::shfl::held;

/// Waiters lend the owner their rank: it runs no later than they would (priority inheritance;
/// `000_…`, "Priority inheritance or boosting"). The queue is as they came: `Then<Priority, Boost>`
/// serves the most urgent first too.
///
/// The platform lends ([`Urgency::lend`](antiphon_platform::Urgency::lend)): on Linux this needs
/// the right to raise the priority of a thread; without it, nothing is lent. A loan is given back
/// when the lock is released, all loans of a thread with the last lock that has brought it one.
/// Threads and programs that the owner starts meanwhile keep it, because the kernel lets them
/// inherit it; a child of a fork gives it back when it first asks for its id, as for a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boost;

impl Policy for Boost {
    fn shuffles<P: Platform>(self) -> bool {
        false
    }

    fn notes<P: Platform>(self) -> bool {
        true
    }

    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        Priority.on_wait(me);
    }

    /// The policy makes no difference between them.
    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        true
    }

    fn lends(self) -> bool {
        true
    }
}

/// A thread that has held locks for longer waits for longer: the thread that has held them least is
/// served first (scheduler-cooperative locks: Patel and others, EuroSys 2020). The time for which a
/// thread holds locks is measured in locks that have this policy, over all of them, and counts half
/// after 17 ms.
///
/// The policy ranks waiters by this time, so it does not go together with [`Priority`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scl;

impl Policy for Scl {
    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        me.set_rank(u16::try_from(held::<P>()).unwrap_or(u16::MAX));
    }

    /// The order is the same for every shuffler.
    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        true
    }

    fn sorts(self) -> bool {
        true
    }

    fn compare<P: Platform>(
        self,
        _: &Waiting<P>,
        one: &Waiting<P>,
        other: &Waiting<P>,
    ) -> Ordering {
        one.rank().cmp(&other.rank())
    }

    fn strict(self) -> bool {
        true
    }

    fn bypass(self) -> u16 {
        64
    }

    fn measures(self) -> bool {
        true
    }
}
