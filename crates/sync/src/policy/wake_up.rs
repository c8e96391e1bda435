//! The policy that wakes the next waiter before its turn.

use antiphon_platform::Platform;

use super::{Policy, Waiting};

/// The next waiter is woken ahead of its turn: by the head, when it begins to wait as the head, or
/// by the owner that makes it the head (`000_…`, "Blocking lock: wake up a nearby sleeping
/// waiter"). Without this it sleeps until the lock is free, and the lock then stands idle until the
/// waiter comes, or another thread takes it.
///
/// Where there are CPUs to spare, heads do so anyway ([`Form::LINGER`](crate::lock::Form::LINGER)).
/// With this policy they also do so on crowded CPUs: for short critical sections where serving
/// waiters in turn matters more than throughput. A waiter that is woken too early sleeps again. The
/// queue keeps the order of arrival; `Then<Numa, WakeUp>` also sorts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUp;

impl Policy for WakeUp {
    fn shuffles<P: Platform>(self) -> bool {
        false
    }

    /// Always true: the policy does not distinguish waiters.
    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        true
    }

    fn wakes(self) -> bool {
        true
    }
}
