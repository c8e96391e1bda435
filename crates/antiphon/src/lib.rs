//! Locks for many-core Linux machines: small, NUMA-aware, and steady when threads outnumber CPUs.
//!
//! ```
//! use std::thread;
//!
//! static COUNT: antiphon::Mutex<u64> = antiphon::Mutex::new(0);
//!
//! thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| (0..1000).for_each(|_| *COUNT.lock() += 1));
//!     }
//! });
//! assert_eq!(*COUNT.lock(), 4000);
//! ```
//!
//! [`Mutex`] is 8 bytes beside its value, [`SpinMutex`] 4, [`RwLock`] 16; a free lock owns nothing
//! else, and none is ever poisoned. All are [`lock_api`] types, so what is written for those works.
//! [`enable_light`] makes unlocking a [`Mutex`] cheaper, where the machine can do it; off at first.
//! [`generic`] has the same locks for other machines than this one: a model checker, a simulator.

mod condvar;
mod raw;
mod rw;

pub use antiphon_linux::light::enable_light;
pub use antiphon_platform::Unsupported;
pub use condvar::RawCondvar;
pub use lock_api;
pub use raw::{RawMutex, RawSpin};
pub use rw::RawRwLock;

/// A blocking mutex: [`ShflMutex`](generic::ShflMutex) on Linux.
pub type Mutex<T> = lock_api::Mutex<RawMutex, T>;
/// What [`Mutex::lock`] returns; unlocks when dropped.
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, RawMutex, T>;
/// A condition variable for [`Mutex`]: `lock_api`'s type over [`RawCondvar`].
///
/// ```
/// use antiphon::{Condvar, Mutex};
///
/// static READY: Mutex<bool> = Mutex::new(false);
/// static CHANGED: Condvar = Condvar::new();
///
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *READY.lock() = true;
///         CHANGED.notify_one();
///     });
///     let mut ready = READY.lock();
///     CHANGED.wait_while(&mut ready, |ready| !*ready);
/// });
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;
/// A spinlock, for critical sections well under a microsecond: [`ShflSpin`](generic::ShflSpin).
pub type SpinMutex<T> = lock_api::Mutex<RawSpin, T>;
/// What [`SpinMutex::lock`] returns; unlocks when dropped.
pub type SpinMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawSpin, T>;

/// A blocking readers-writer lock: [`ShflRwLock`](generic::ShflRwLock) on Linux.
///
/// Readers wait behind a waiting writer, so a thread that reads already must not read again.
///
/// ```
/// static NAMES: antiphon::RwLock<Vec<&str>> = antiphon::RwLock::new(Vec::new());
///
/// let mut names = NAMES.write();
/// names.push("reader");
/// let names = antiphon::RwLockWriteGuard::downgrade(names);
/// assert_eq!(*names, ["reader"]);
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;
/// What [`RwLock::read`] returns; unlocks when dropped.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;
/// What [`RwLock::write`] returns; unlocks when dropped.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;
/// What [`RwLock::upgradable_read`] returns; unlocks when dropped.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// The algorithms, generic over the machine.
pub mod generic {
    pub use antiphon_linux::Linux;
    pub use antiphon_platform::Platform;
    pub use antiphon_sync::lock::classic;
    pub use antiphon_sync::lock::{Form, Lock, Published, ShflMutex, ShflSpin, Standard};
    pub use antiphon_sync::lock::{GroupReaders, GroupWriters};
    pub use antiphon_sync::lock::{MAX_READERS, Recursive, Refused, RwForm, ShflRwLock};
    pub use antiphon_sync::policy;
    pub use antiphon_sync::wait::Condvar;
}
