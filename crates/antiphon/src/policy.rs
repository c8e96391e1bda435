//! Lock policies: the order in which a lock serves its waiters. A policy is chosen by name, or is
//! your own type.
//!
//! ```
//! use antiphon::policy::{Chosen, set_policy, set_priority};
//!
//! static JOBS: antiphon::Mutex<Vec<u32>> = antiphon::Mutex::new(Vec::new());
//!
//! // At any time, also while others hold the lock and wait for it.
//! set_policy(&JOBS, Chosen::named("priority").unwrap());
//! set_priority(Some(100));
//! JOBS.lock().push(1);
//! ```
//!
//! `docs/policies.md` lists the policies, and shows how to write one.

use antiphon_linux::Linux;
pub use antiphon_linux::may_lend;
pub use antiphon_platform::Platform;
use antiphon_sync::lock::ShflOwned;
pub use antiphon_sync::policy::{
    Boost, Chosen, Distance, None, Numa, Policy, Priority, Scl, Then, Unknown, Waiting, WakeUp,
};
use lock_api::GuardNoSend;

use crate::condvar::RawCondvar;
use crate::mutex::RawMutex;

/// A blocking mutex whose waiters are ordered by `Q`; otherwise like [`crate::Mutex`].
pub type Mutex<Q, T> = lock_api::Mutex<RawMutex<Q>, T>;

/// A condition variable for a [`Mutex`] with the policy `Q`.
pub type Condvar<Q> = lock_api::Condvar<RawCondvar<Q>>;

/// A blocking mutex that records its owner, for policies that need it ([`Boost`], [`Scl`]).
pub type OwnedMutex<Q, T> = lock_api::Mutex<RawOwnedMutex<Q>, T>;

/// The raw form of [`OwnedMutex`], 16 bytes. The thread that locked it must unlock it, because
/// unlocking takes back the priority that was lent to the owner.
#[repr(transparent)]
pub struct RawOwnedMutex<Q: Policy>(ShflOwned<Linux, Q>);

const _: () = assert!(size_of::<RawMutex<None>>() == 8 && size_of::<RawOwnedMutex<None>>() == 16);

// SAFETY: a mutex with acquire and release semantics, which may be moved or dropped while it is
// locked: its waiters' nodes don't point back at it.
unsafe impl<Q: Policy> lock_api::RawMutex for RawOwnedMutex<Q> {
    // Each use creates a new lock, as `lock_api` requires.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(ShflOwned::NEW);
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        self.0.lock();
        GuardNoSend::new()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.0.try_lock().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardNoSend) {
        // SAFETY: the guard proves that the caller owns the lock.
        unsafe { self.0.unlock() }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

impl<Q: Policy> RawOwnedMutex<Q> {
    /// Like [`set_policy`], for a policy type `Q` that may contain several policies
    /// ([`Policy::of`]).
    pub fn set_policy(&self, policy: Q) {
        self.0.set_policy(policy);
    }
}

impl<Q: Policy> RawMutex<Q> {
    /// Like [`set_policy`], for a policy type `Q` that may contain several policies
    /// ([`Policy::of`]).
    pub fn set_policy(&self, policy: Q) {
        self.0.set_policy(policy);
    }
}

/// Orders the waiters of `mutex` by `policy` from now on. Never blocks. The lock may be held, and
/// threads may be waiting for it: they keep the data that they recorded when they began to wait,
/// and are put in the new order.
pub fn set_policy<T: ?Sized>(mutex: &crate::Mutex<T>, policy: Chosen) {
    // SAFETY: the lock is neither acquired nor released.
    unsafe { mutex.raw() }.0.set_policy(policy);
}

/// Sets the priority of the calling thread for locks that serve by priority; a larger number is
/// served first. `None` uses the kernel's priority: 20 − nice (1 to 40), or 100 + the real-time
/// priority. That is the default of a new thread, and costs a system call for each wait. The
/// priority counts from the thread's next wait on. Never blocks. A fiber has the priority of the
/// thread under it.
pub fn set_priority(rank: Option<u8>) {
    antiphon_sync::policy::set_priority::<Linux>(rank);
}

/// The examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/policies.md")]
struct Guide;
