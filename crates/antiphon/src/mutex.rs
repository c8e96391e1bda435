//! The raw mutex and spinlock that [`lock_api`] wraps.

use std::time::{Duration, Instant};

use antiphon_linux::Linux;
use antiphon_sync::lock::{ShflMutex, ShflSpin};
use antiphon_sync::policy::{Chosen, Policy};
use lock_api::GuardSend;

use crate::budget::may_be_ready;
use crate::deadline::deadline_after;

/// The raw form of [`Mutex`](crate::Mutex), 8 bytes. Any thread may unlock it. `Q` orders its
/// waiters.
#[repr(transparent)]
pub struct RawMutex<Q: Policy = Chosen>(pub(crate) ShflMutex<Linux, Q>);

/// The raw form of [`SpinMutex`](crate::SpinMutex), 4 bytes. Any thread may unlock it.
#[repr(transparent)]
pub struct RawSpin(ShflSpin<Linux>);

const _: () = assert!(size_of::<RawMutex>() == 8 && size_of::<RawSpin>() == 4);

/// Implements `lock_api`'s trait with the lock's own methods of the same names. `lock` runs
/// `before` first.
macro_rules! raw_mutex {
    ([$($policy:ident)?] $raw:ty, $lock:ty, $before:block) => {
        // SAFETY: both locks are mutexes with acquire and release semantics, which may be moved or
        // dropped while they are locked: their waiters' nodes don't point back at them.
        unsafe impl$(<$policy: Policy>)? lock_api::RawMutex for $raw {
            // Each use creates a new lock, as `lock_api` requires.
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = Self(<$lock>::NEW);
            type Guard = GuardSend;

            #[inline]
            fn lock(&self) -> GuardSend {
                $before
                self.0.lock();
                GuardSend::new()
            }

            #[inline]
            fn try_lock(&self) -> Option<GuardSend> {
                self.0.try_lock().then_some(GuardSend::new())
            }

            #[inline]
            unsafe fn unlock(&self, _: GuardSend) {
                // SAFETY: the guard proves that the caller owns the lock.
                unsafe { self.0.unlock() }
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.0.is_locked()
            }
        }
    };
}

raw_mutex!([Q] RawMutex<Q>, ShflMutex<Linux, Q>, { may_be_ready() });
raw_mutex!([] RawSpin, ShflSpin<Linux>, {});

// SAFETY: a timed lock either owns the lock or doesn't.
unsafe impl<Q: Policy> lock_api::RawMutexTimed for RawMutex<Q> {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, timeout: Duration) -> Option<GuardSend> {
        may_be_ready();
        self.0.lock_until(deadline_after(timeout)).then_some(GuardSend::new())
    }

    fn try_lock_until(&self, timeout: Instant) -> Option<GuardSend> {
        self.try_lock_for(timeout.saturating_duration_since(Instant::now()))
    }
}
