//! Awake in time.

use antiphon_platform::Platform;

use super::{Policy, Waiting};

/// The next waiter is woken ahead of its turn: by the head, as it begins to wait in that place, or
/// by the owner that makes it the head (`000_…`, "Blocking lock: wake up a nearby sleeping
/// waiter"). Without this it sleeps until the lock is free, and the lock then stands idle till it
/// comes, or another thread takes it.
///
/// Where there are CPUs to spare, heads do so anyway ([`Form::LINGER`](crate::lock::Form::LINGER)).
/// With this policy they do so on crowded CPUs too: for short critical sections where it matters
/// more that waiters are served in turn than how much work they get done. A waiter that is woken
/// too early sleeps again. The queue is as they came; `Then<Numa, WakeUp>` sorts it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUp;

impl Policy for WakeUp {
    fn shuffles<P: Platform>(self) -> bool {
        false
    }

    /// The policy makes no difference between them.
    fn groups<P: Platform>(self, _: &Waiting<P>, _: &Waiting<P>) -> bool {
        true
    }

    fn wakes(self) -> bool {
        true
    }
}
