//! In which order waiters are served: policies, chosen by name or written by oneself.
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
//! `docs/policies.md` says which there are, and how to write one.

use antiphon_linux::Linux;
pub use antiphon_platform::{Atomic, Platform, RANK, Waiter};
pub use antiphon_sync::policy::{Chosen, Distance, None, Numa, Policy, Priority, Then, Unknown};

pub use crate::{RawCondvar, RawMutex};

/// A blocking mutex whose waiters are sorted by `Q`; otherwise as [`crate::Mutex`].
pub type Mutex<Q, T> = lock_api::Mutex<RawMutex<Q>, T>;

/// A condition variable for such a [`Mutex`].
pub type Condvar<Q> = lock_api::Condvar<RawCondvar<Q>>;

impl<Q: Policy> RawMutex<Q> {
    /// As [`set_policy`]: for policies of one's own among which a lock may choose
    /// ([`Policy::of`]).
    pub fn set_policy(&self, policy: Q) {
        self.0.set_policy(policy);
    }
}

/// Has the waiters of `mutex` sorted by `policy` from now on; never blocks. The lock may be held,
/// and others may wait for it: they keep what they noted when they began to wait, and are put in
/// the new order.
pub fn set_policy<T: ?Sized>(mutex: &crate::Mutex<T>, policy: Chosen) {
    // SAFETY: the lock is neither acquired nor released.
    unsafe { mutex.raw() }.0.set_policy(policy);
}

/// Says how urgent the calling thread is to locks that serve the most urgent first; larger goes
/// first. `None`: as the kernel holds it to be, by its nice value (20 − nice: 1 to 40) or real-time
/// priority (100 + priority), which is what holds for a new thread and costs a system call a wait.
/// Holds from the thread's next wait on; never blocks. A fiber has the rank of the thread under it.
pub fn set_priority(rank: Option<u8>) {
    antiphon_sync::policy::set_priority::<Linux>(rank);
}

/// The examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/policies.md")]
struct Guide;
