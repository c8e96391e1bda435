//! The raw condition variable that [`lock_api`] wraps.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_platform::Deadline;
use antiphon_sync::policy::{Chosen, Policy};
use antiphon_sync::wait;
use lock_api::GuardSend;

use crate::deadline::deadline_after;
use crate::mutex::RawMutex;

/// The raw form of [`Condvar`](crate::Condvar), 16 bytes.
///
/// Waiters are notified in the order of their arrival. A wait may end without a notification (in
/// rare cases, when a million others wait), so the notify functions return no counts.
#[repr(transparent)]
pub struct RawCondvar<Q: Policy = Chosen>(wait::Condvar<Linux>, PhantomData<Q>);

impl<Q: Policy> RawCondvar<Q> {
    fn wait_deadline(&self, mutex: &RawMutex<Q>, deadline: Option<Deadline>) -> bool {
        // SAFETY: the waiter owns the mutex.
        unsafe { self.0.wait_with(&mutex.0, deadline) }
    }
}

// SAFETY: the caller is on the list before it unlocks the mutex, and locks it before it returns;
// nothing on the way panics, and `GuardSend` has no state.
unsafe impl<Q: Policy> lock_api::RawCondvar for RawCondvar<Q> {
    // Each use creates a new value, as `lock_api` requires.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(wait::Condvar::NEW, PhantomData);
    type RawMutex = RawMutex<Q>;

    unsafe fn wait(&self, mutex: &RawMutex<Q>, _: &mut GuardSend) {
        self.wait_deadline(mutex, None);
    }

    fn notify_one(&self) -> bool {
        self.0.notify_one();
        false
    }

    fn notify_all(&self) -> usize {
        self.0.notify_all();
        0
    }
}

// SAFETY: as for `RawCondvar`: on the list before the unlock, and locked before the return.
unsafe impl<Q: Policy> lock_api::RawCondvarTimed for RawCondvar<Q> {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    unsafe fn wait_until(&self, mutex: &RawMutex<Q>, _: &mut GuardSend, timeout: &Instant) -> bool {
        let timeout = timeout.saturating_duration_since(Instant::now());
        !self.wait_deadline(mutex, Some(deadline_after(timeout)))
    }
}
