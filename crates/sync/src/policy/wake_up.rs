//! Awake in time.

use antiphon_platform::{Platform, Waiter};

use super::Policy;

/// The next waiter is woken ahead of its turn: by the head, as it begins to wait in that place, or
/// by the owner that makes it the head (`000_…`, "Blocking lock: wake up a nearby sleeping
/// waiter").
/// Without this it sleeps until the lock is free, and the lock then stands idle till it comes, or
/// is had by somebody else.
///
/// For short critical sections on CPUs that are not crowded, where waiters that were served in turn
/// matter: who is woken in time spins for some microseconds, and sleeps again if that was too
/// early. The queue is as they came; `Then<Numa, WakeUp>` sorts it too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUp;

impl Policy for WakeUp {
    fn shuffles<P: Platform>(self) -> bool {
        false
    }

    /// It makes no difference between them.
    fn groups<P: Platform>(self, _: &Waiter<P>, _: &Waiter<P>) -> bool {
        true
    }

    fn wakes(self) -> bool {
        true
    }
}
