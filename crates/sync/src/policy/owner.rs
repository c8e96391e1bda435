//! Policies that need to know a lock's owner: they have an effect in
//! [`ShflOwned`](crate::lock::ShflOwned), and none in a lock without an owner word.

use core::cmp::Ordering;

use antiphon_platform::Platform;

use super::{Policy, Priority, Waiting};
use crate::lock::shfl::held;

/// Waiters lend the owner their rank, so that it runs no later than they would (priority
/// inheritance; `000_…`, "Priority inheritance or boosting"). The queue keeps the order of arrival;
/// `Then<Priority, Boost>` also serves the most urgent waiter first.
///
/// The platform lends ([`Urgency::lend`](antiphon_platform::Urgency::lend)): on Linux this needs
/// the right to raise the priority of a thread; without it, nothing is lent. A loan is given back
/// when the lock is released; a thread with several loans gives all of them back with the last such
/// lock. Threads and programs that the owner starts meanwhile keep the raised priority, because the
/// kernel lets them inherit it; a child of a fork gives it back when it first asks for its id, as
/// it does for a wait.
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

    /// Always true: the policy does not distinguish waiters.
    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        true
    }

    fn lends(self) -> bool {
        true
    }
}

/// A thread that has held locks for longer waits for longer: the thread that has held them least is
/// served first (scheduler-cooperative locks: Patel and others, EuroSys 2020). A thread's hold time
/// is measured over all locks that have this policy, and counts half after 17 ms.
///
/// The policy ranks waiters by this time, so it cannot be combined with [`Priority`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scl;

impl Policy for Scl {
    fn on_wait<P: Platform>(self, me: &Waiting<P>) {
        me.set_rank(u16::try_from(held::<P>()).unwrap_or(u16::MAX));
    }

    /// Always true: the order is the same for every shuffler.
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
