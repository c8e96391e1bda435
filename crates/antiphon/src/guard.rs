//! Types that calls return, to name in a signature or a field: guards of a part of a value, of a
//! spinlock and of an upgradable reader; permits, and results of waits. With the feature
//! `arc_lock`, guards that own an `Arc` of their lock.

use crate::mutex::{RawMutex, RawSpin};
use crate::rw::RawRwLock;

#[cfg(feature = "arc_lock")]
pub use crate::arc::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use crate::barrier::BarrierWaitResult;
pub use crate::broadcast::Generation;
pub use crate::event::EventKey;
pub use crate::reentrant::ReentrantMutexGuard;
pub use crate::semaphore::{SemaphorePermit, TooManyPermits};

/// A guard of a part of the value that a [`MutexGuard`](crate::MutexGuard) guards;
/// [`MutexGuard::map`](crate::MutexGuard::map) makes it.
///
/// ```
/// use antiphon::guard::MappedMutexGuard;
/// use antiphon::{Mutex, MutexGuard};
///
/// static PAIR: Mutex<(u32, String)> = Mutex::new((0, String::new()));
///
/// fn name() -> MappedMutexGuard<'static, String> {
///     MutexGuard::map(PAIR.lock(), |pair| &mut pair.1)
/// }
/// name().push_str("mapped");
/// assert_eq!(PAIR.lock().1, "mapped");
/// ```
pub type MappedMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawMutex, T>;
/// The guard that [`SpinMutex::lock`](crate::SpinMutex) returns; unlocks when dropped.
pub type SpinMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawSpin, T>;
/// A guard of a part of the value that a [`SpinMutexGuard`] guards.
pub type MappedSpinMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawSpin, T>;

/// The guard that [`RwLock::upgradable_read`](crate::RwLock) returns; unlocks when dropped.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A guard of a part of the value that a [`RwLockReadGuard`](crate::RwLockReadGuard) guards.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;
/// A guard of a part of the value that a [`RwLockWriteGuard`](crate::RwLockWriteGuard) guards.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;
